"""Validates JSON files against a JSON schema: validate_json.py SCHEMA FILE...

Prints each file's first fault. Exit status: 0 all valid, 1 all invalid, 3 some of each.
"""

import json
import pathlib
import sys

import jsonschema


def main(schema_path, *paths):
    schema = json.loads(pathlib.Path(schema_path).read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    valid = 0
    for path in paths:
        fault = next(validator.iter_errors(json.loads(pathlib.Path(path).read_text())), None)
        if fault is None:
            valid += 1
            print(f"{path}: valid")
        else:
            print(f"{path}: {fault.json_path}: {fault.message[:200]}")
    return 0 if valid == len(paths) else 1 if valid == 0 else 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

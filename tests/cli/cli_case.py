"""What the end-to-end tests of the command `holdfast` share.

Usage of each: NAME_test.py HOLDFAST SOURCE_DIR [unittest's arguments]
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import jsonschema
except ImportError:
    jsonschema = None

HOLDFAST, SOURCE = sys.argv[1:3]

SCENARIO = """format: 1
name: small
teaches: A small one.
topology: {source}/topologies/h100-16-hosts.yaml
model: {{preset: qwen2.5-7b}}
layouts: {{tp4: {{tensor_parallel: 4}}}}
groups:
  trainer: {{place: {{gpus: ['h0.gpu[0-3]']}}, layout: tp4}}
  rollout: {{place: {{hosts: 'h[1-3]'}}, layout: tp4}}
holders: [trainer]
update: {{receivers: [rollout]}}
policy: [star, chain, two_tree]
options: {{blocks_per_eighth: 8}}
"""


def schema(name):
    with open(f"{SOURCE}/core/io/schemas/{name}.schema.json", encoding="utf-8") as file:
        return json.load(file)


def validate(values, name):
    checker = jsonschema.Draft202012Validator(schema(name))
    checker.check_schema(checker.schema)
    for value in values:
        checker.validate(value)


class CliCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-cli-")
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def scenario(self, find="", replace="", name="s.yaml"):
        text = SCENARIO.format(source=SOURCE)
        self.assertIn(find, text)
        return self.write(name, text.replace(find, replace) if find else text)

    def run_it(self, *arguments, status=0):
        done = subprocess.run([HOLDFAST, *arguments], capture_output=True, text=True, check=False,
                              timeout=300, stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, status, f"{arguments}\n{done.stdout}\n{done.stderr}")
        return done

    def read(self, *parts):
        with open(os.path.join(self.folder.name, *parts), encoding="utf-8") as file:
            return file.read()


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)

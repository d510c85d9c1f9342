target_sources(holdfast_io PRIVATE atomic_file.cpp json_document.cpp json_shape.cpp plan_json.cpp plan_reader.cpp)

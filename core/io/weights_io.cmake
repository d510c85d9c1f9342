target_sources(holdfast_io PRIVATE json_events.cpp safetensors.cpp safetensors_index.cpp)

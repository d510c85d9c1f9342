target_sources(holdfast_io PRIVATE
  text_file.cpp yaml_document.cpp yaml_parser.cpp
  topology_draft.cpp host_template.cpp cluster_generator.cpp wan_generator.cpp
  explicit_topology.cpp topology_reader.cpp topology_summary.cpp)

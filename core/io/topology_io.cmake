target_sources(holdfast_io PRIVATE
  text_file.cpp yaml_document.cpp yaml_parser.cpp
  topology_draft.cpp host_template.cpp fabric_site.cpp clos_levels.cpp rail_fabric.cpp
  fat_tree.cpp cluster_generator.cpp wan_generator.cpp explicit_topology.cpp topology_reader.cpp
  topology_summary.cpp topology_dot.cpp)

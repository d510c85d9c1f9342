configure_file(program_version.hpp.in ${PROJECT_BINARY_DIR}/generated/core/io/program_version.hpp
               @ONLY)
target_include_directories(holdfast_io PUBLIC ${PROJECT_BINARY_DIR}/generated)
target_sources(holdfast_io PRIVATE
  compare.cpp compare_inputs.cpp compare_json.cpp compare_limits.cpp compare_reasons.cpp
  compare_stall.cpp deployment.cpp drawn.cpp exact_decimal.cpp group_placement.cpp group_waits.cpp name_pattern.cpp
  other_traffic.cpp paper_ratios.cpp pattern_list.cpp printable.cpp results_detail.cpp results_files.cpp results_folder.cpp
  results_links.cpp results_reader.cpp results_summary.cpp run_detail.cpp run_figures.cpp
  scenario_baselines.cpp scenario_faults.cpp scenario_files.cpp scenario_groups.cpp scenario_members.cpp
  scenario_protocol.cpp scenario_reader.cpp scenario_update.cpp scenario_workload.cpp
  shard_blocks.cpp share.cpp spot_trace.cpp workload_figures.cpp)

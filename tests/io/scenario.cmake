holdfast_test(scenario_test LABELS unit
  SOURCES name_pattern_test.cpp scenario_reader_test.cpp scenario_update_test.cpp
          other_traffic_test.cpp scenario_files_test.cpp scenario_layouts_test.cpp
          scenario_workload_test.cpp spot_trace_test.cpp deployment_test.cpp
  LIBS holdfast_io)
holdfast_test(scenario_property_test LABELS property SOURCES scenario_property_test.cpp
  LIBS holdfast_io)
holdfast_test(results_test LABELS unit
  SOURCES results_test.cpp run_figures_test.cpp printable_test.cpp workload_figures_test.cpp
  LIBS holdfast_io)
holdfast_test(compare_test LABELS unit property
  SOURCES compare_test.cpp results_links_test.cpp results_reader_test.cpp run_detail_test.cpp
  LIBS holdfast_io)
holdfast_test(shipped_scenarios_test LABELS golden SOURCES shipped_scenarios_test.cpp
  LIBS holdfast_io)

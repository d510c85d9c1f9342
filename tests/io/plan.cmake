holdfast_test(json_shape_test LABELS unit SOURCES json_shape_test.cpp LIBS holdfast_io)
holdfast_test(atomic_file_test LABELS unit SOURCES atomic_file_test.cpp LIBS holdfast_io)
holdfast_test(plan_json_test LABELS unit property SOURCES plan_json_test.cpp LIBS holdfast_io)

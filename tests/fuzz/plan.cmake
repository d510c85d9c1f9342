holdfast_fuzzer(fuzz_plan fuzz_plan.cpp holdfast_io)

holdfast_fuzzer(fuzz_frame fuzz_frame.cpp holdfast_real)

// A shared library, but no op library.
extern "C" int answer() { return 42; }

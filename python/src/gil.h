// Released: lets other threads run Python while this one waits for the engine.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

namespace tagflow::python {

// Note [The end of the interpreter]
// While the interpreter ends, CPython up to 3.13 ends a thread that asks for
// the GIL, by unwinding its stack. That is an abort, since functions between
// there and the thread's start are noexcept. Such a thread stops here instead,
// until the process is gone, as CPython has it from 3.14 on.

// REQUIRES: the GIL is held. It is again, once this is gone.
class Released {
 public:
  Released() : state_(PyEval_SaveThread()) {}
  ~Released() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      for (;;) pause();
    }
  }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

 private:
  PyThreadState* const state_;
};

}  // namespace tagflow::python

// What ThreadSanitizer does not report in the tests of this folder, besides
// tests/checks/tsan.supp: CAF's networking hands messages and actors from
// thread to thread under locks of its own, which ThreadSanitizer does not see.
// So no actor is checked here, of the control plane or of the engine; the tests
// of actors/ check the engine's. Links, workers and masters are not actors.
#ifdef TAGFLOW_SANITIZES_THREAD

extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:libcaf_core.so\n"
         "race:libcaf_io.so\n";
}

#endif

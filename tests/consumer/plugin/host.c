/* Loads the plug-in whose path it is given, and has it count. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  int64_t (*count_to)(int64_t) =
      plugin == NULL ? NULL : (int64_t(*)(int64_t))dlsym(plugin, "count_to");
  if (count_to == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (count_to(100000) != 100000) return 1;
  printf("plugin: ok\n");
  return 0;
}

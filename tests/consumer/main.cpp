// What a user of the installed library writes.
#include "graph/dtype.h"

int main() { return 0; }

// What libjpeg and libpng write to when nobody took their errors: see muster_copy_for_shared_libraries.
#include <cstdio>

extern "C" {
extern FILE* muster_stderr;
FILE* muster_stderr = stderr;
}

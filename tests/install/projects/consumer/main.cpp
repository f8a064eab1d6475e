// Calls into several modules through the one header: what the installed headers need is installed, and the
// archive is whole.
#include <muster/muster.h>

#include <cstdio>
#include <string>

int main() {
  std::printf("kernels of %s\n", std::string(muster::kernel_library_name()).c_str());
  // Of a half-set environment init() says what is missing.
  const auto role = muster::train::init(muster::FixedEnvironment{{{"MS_WORKER_NUM", "2"}}});
  if (role) return 1;
  std::puts(role.error().message.c_str());
  return role.error().message.find("MS_ROLE") == std::string::npos ? 2 : 0;
}

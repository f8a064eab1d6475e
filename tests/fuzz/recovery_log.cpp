// The scheduler's log, torn or damaged anywhere.
#include "muster/cluster/recovery_log.h"
#include "fuzz.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto contents = cluster::read_log(fuzz::bytes_of(data, size));
  fuzz::expect(!contents || contents->whole_size_bytes <= size);
  return 0;
}

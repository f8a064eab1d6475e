// JPEG and PNG pictures.
#include "fuzz.h"
#include "muster/data/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(muster::data::decode_picture({data, size}));
  return 0;
}

// Private: the bytes of a picture's file to its pixels.
#pragma once

#include <cstdint>
#include <span>

#include "muster/tensor/tensor.h"

namespace muster::data {

// A JPEG or PNG file as an image (H, W, 3) of red, green and blue; transparency is dropped. An error says
// what is wrong with the bytes.
Result<Tensor> decode_picture(std::span<const std::uint8_t> bytes);

}  // namespace muster::data

// Decode: the bytes of a JPEG or PNG file to an image.
#include "muster/data/decode.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

// libjpeg's header wants <cstdio> before it.
#include <jpeglib.h>

#include "muster/data/operation_row.h"
#include "muster/data/transform.h"
#include "muster/data/vision.h"

namespace muster::data {
namespace {

constexpr std::int64_t pixels_max = std::int64_t{1} << 28;  // 800 MB of colours
constexpr std::int64_t channels = 3;

Result<> check_pixels(std::int64_t height, std::int64_t width) {
  if (height >= 1 && width >= 1 && height <= pixels_max / width) return {};
  return fail(Code::corrupt, fmt::format("the picture says that it has {} x {} pixels; at most {} are read",
                                         height, width, pixels_max));
}

// libjpeg reports an error by a jump out of it.
struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg knows only its address
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

[[noreturn]] void leave_jpeg(j_common_ptr common) {
  auto* errors = reinterpret_cast<JpegErrors*>(common->err);
  common->err->format_message(common, errors->message);
  std::longjmp(errors->jump, 1);
}

void ignore_warning(j_common_ptr, int) {}

struct Jpeg {
  jpeg_decompress_struct state{};
  JpegErrors errors{};

  Jpeg() {
    state.err = jpeg_std_error(&errors.manager);
    errors.manager.error_exit = &leave_jpeg;
    errors.manager.emit_message = &ignore_warning;
    jpeg_create_decompress(&state);
  }
  Jpeg(const Jpeg&) = delete;
  Jpeg& operator=(const Jpeg&) = delete;
  ~Jpeg() { jpeg_destroy_decompress(&state); }

  // These two hold no objects that a jump would skip. False: errors.message says why.
  bool begin(const std::uint8_t* bytes, std::size_t size) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_mem_src(&state, bytes, static_cast<unsigned long>(size));
    jpeg_read_header(&state, TRUE);
    state.out_color_space = JCS_RGB;
    jpeg_start_decompress(&state);
    return true;
  }
  bool read(std::uint8_t* out) {
    if (setjmp(errors.jump) != 0) return false;
    while (state.output_scanline < state.output_height) {
      JSAMPROW line = out + std::size_t{state.output_scanline} * state.output_width * channels;
      jpeg_read_scanlines(&state, &line, 1);
    }
    jpeg_finish_decompress(&state);
    return true;
  }
};

Result<Tensor> decode_jpeg(const std::uint8_t* bytes, std::size_t size) {
  Jpeg jpeg;
  const auto damaged = [&] {
    return fail(Code::corrupt, fmt::format("the JPEG cannot be read: {}", jpeg.errors.message));
  };
  if (!jpeg.begin(bytes, size)) return damaged();
  const std::int64_t height = jpeg.state.output_height, width = jpeg.state.output_width;
  MUSTER_TRY_VOID(check_pixels(height, width));
  Tensor image(DType::uint8, {height, width, channels});
  if (!jpeg.read(image.data<std::uint8_t>())) return damaged();
  if (jpeg.errors.manager.num_warnings > 0)
    return fail(Code::corrupt, "the JPEG is damaged or ends before its picture does");
  return image;
}

Result<Tensor> decode_png(const std::uint8_t* bytes, std::size_t size) {
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  const auto damaged = [&] {
    return fail(Code::corrupt, fmt::format("the PNG cannot be read: {}", png.message));
  };
  if (png_image_begin_read_from_memory(&png, bytes, size) == 0) return damaged();
  const std::int64_t height = png.height, width = png.width;
  if (auto fits = check_pixels(height, width); !fits) {
    png_image_free(&png);
    return fail(fits.error());
  }
  png.format = PNG_FORMAT_RGBA;  // transparency is dropped, not blended
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, nullptr, pixels.data(), 0, nullptr) == 0) return damaged();
  Tensor image(DType::uint8, {height, width, channels});
  auto* out = image.data<std::uint8_t>();
  for (std::size_t i = 0; i < pixels.size(); i += 4, out += 3) std::memcpy(out, pixels.data() + i, 3);
  return image;
}

class Decode final : public Transform {
 public:
  std::string name() const override { return "Decode"; }
  Result<ValueType> infer(const ValueType& input) const override {
    if (input.dtype != DType::uint8 || input.shape.rank() != 1)
      return fail(Code::invalid_argument,
                  fmt::format("Decode takes the bytes of a file, uint8 (n,), not {} {}",
                              to_string(input.dtype), to_string(input.shape)));
    return ValueType{DType::uint8, {-1, -1, channels}};
  }
  bool by_value() const override { return true; }
  void run(const ValueType&, const Rows&, const std::byte*, std::byte*) const override {}
  bool follow(Channels&) const override { return false; }
  Result<Tensor> apply_value(const Tensor& value) const override {
    MUSTER_TRY_VOID(infer({value.dtype(), value.shape()}));
    return decode_picture({value.data<std::uint8_t>(), static_cast<std::size_t>(value.elements())});
  }
};

}  // namespace

Result<Tensor> decode_picture(std::span<const std::uint8_t> bytes) {
  if (bytes.size() > 3 && bytes[0] == 0xff && bytes[1] == 0xd8)
    return decode_jpeg(bytes.data(), bytes.size());
  if (bytes.size() > 8 && png_sig_cmp(bytes.data(), 0, 8) == 0) return decode_png(bytes.data(), bytes.size());
  return fail(Code::corrupt, "the bytes are neither a JPEG nor a PNG file");
}

OperationPtr decode() { return std::make_shared<Decode>(); }

std::vector<const OperationRow*> rows_of_decode() {
  static const OperationRow row{.name = "Decode",
                                .documentation = "The bytes of a JPEG or PNG file as an image (H, W, 3).",
                                .arguments = {{.name = "to_pil",
                                               .otherwise = false,
                                               .is_fixed = true,
                                               .meaning = "False: the image is an array, no PIL image"}},
                                .make = [](const Settings&) { return decode(); }};
  return {&row};
}

}  // namespace muster::data

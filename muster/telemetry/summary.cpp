#include "muster/telemetry/summary.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "muster/base/protobuf.h"

namespace muster::telemetry {
namespace {

using protobuf::Writer;

// Fields, as the messages of TensorFlow and TensorBoard number them.
namespace value_field {
constexpr std::uint64_t tag = 1, simple_value = 2, image = 4, histogram = 5, tensor = 8, metadata = 9;
}
namespace metadata_field {
constexpr std::uint64_t plugin = 1, plugin_name = 1, plugin_content = 2, data_class = 4;
}
namespace tensor_field {
constexpr std::uint64_t dtype = 1, shape = 2, elements = 4, text = 8;
}
enum class DataClass : std::int64_t { tensor = 2 };
constexpr std::int64_t type_string = 7;

Writer value_of(std::string_view tag) {
  Writer value;
  value.text(value_field::tag, tag);
  return value;
}

// A plugin of TensorBoard shows the value.
void put_plugin(Writer& value, std::string_view name, std::span<const std::byte> content = {}) {
  Writer plugin;
  plugin.text(metadata_field::plugin_name, name);
  if (!content.empty()) plugin.block(metadata_field::plugin_content, content);
  Writer metadata;
  metadata.block(metadata_field::plugin, plugin.bytes());
  metadata.integer(metadata_field::data_class, static_cast<std::int64_t>(DataClass::tensor));
  value.block(value_field::metadata, metadata.bytes());
}

// TensorShapeProto: dim 2 { size 1 }.
Bytes shape_bytes(const Shape& shape) {
  Writer made;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    Writer dim;
    dim.integer(1, shape[axis]);
    made.block(2, dim.bytes());
  }
  return made.take();
}

// TensorFlow's DataType.
std::int64_t type_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return 1;
    case DType::float64:
      return 2;
    case DType::int32:
      return 3;
    case DType::uint8:
      return 4;
    case DType::int16:
      return 5;
    case DType::int8:
      return 6;
    case DType::int64:
      return 9;
    case DType::bool_:
      return 10;
    case DType::bfloat16:
      return 14;
    case DType::uint16:
      return 17;
    case DType::float16:
      return 19;
    case DType::uint32:
      return 22;
    case DType::uint64:
      return 23;
  }
  return 0;
}

}  // namespace

Bytes scalar_summary(std::string_view tag, double value) {
  Writer made = value_of(tag);
  made.real(value_field::simple_value, static_cast<float>(value));
  return made.take();
}

// ---- Histograms -------------------------------------------------------------------------------------------

Histogram::Histogram(std::span<const double> numbers) : counts_(buckets) {
  least_ = std::numeric_limits<double>::infinity();
  greatest_ = -least_;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    least_ = std::min(least_, number);
    greatest_ = std::max(greatest_, number);
    sum_ += number;
    sum_of_squares_ += number * number;
    ++count_;
  }
  if (count_ == 0) least_ = greatest_ = 0;
  const double width = (greatest_ - least_) / static_cast<double>(buckets);
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const auto bucket = width > 0 ? static_cast<std::size_t>((number - least_) / width) : buckets - 1;
    ++counts_[std::min(bucket, buckets - 1)];
  }
}

Bytes Histogram::summary(std::string_view tag) const {
  std::vector<double> limits;
  for (std::size_t i = 1; i <= buckets; ++i)
    limits.push_back(least_ + (greatest_ - least_) * static_cast<double>(i) / static_cast<double>(buckets));
  Writer histogram;  // min 1, max 2, num 3, sum 4, sum_squares 5, bucket_limit 6, bucket 7
  histogram.real64(1, least_);
  histogram.real64(2, greatest_);
  histogram.real64(3, count_);
  histogram.real64(4, sum_);
  histogram.real64(5, sum_of_squares_);
  histogram.reals64(6, limits);
  histogram.reals64(7, counts_);
  Writer made = value_of(tag);
  made.block(value_field::histogram, histogram.bytes());
  return made.take();
}

// ---- Pictures ---------------------------------------------------------------------------------------------

namespace {

Result<Bytes> png_of(const Picture& picture) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = picture.channels == 1   ? PNG_FORMAT_GRAY
                 : picture.channels == 3 ? PNG_FORMAT_RGB
                                         : PNG_FORMAT_RGBA;
  Bytes file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  if (png_image_write_to_memory(&image, file.data(), &size, 0, picture.pixels.data(), 0, nullptr) == 0)
    return fail(Code::invalid_argument, fmt::format("the picture cannot be written: {}", image.message));
  file.resize(size);
  return file;
}

}  // namespace

Result<Bytes> picture_summary(std::string_view tag, const Picture& picture) {
  const auto [height, width, channels, pixels] = picture;
  if (channels != 1 && channels != 3 && channels != 4)
    return fail(Code::invalid_argument,
                fmt::format("image '{}': a picture has 1, 3 or 4 channels, not {}", tag, channels));
  if (height == 0 || width == 0 || pixels.size() != std::size_t{height} * width * channels)
    return fail(Code::invalid_argument, fmt::format("image '{}': {} x {} x {} are no {} bytes", tag, height,
                                                    width, channels, pixels.size()));
  MUSTER_TRY(const Bytes png, png_of(picture));
  Writer image;  // height 1, width 2, colorspace 3, encoded_image_string 4
  image.integer(1, height);
  image.integer(2, width);
  image.integer(3, channels);
  image.block(4, png);
  Writer made = value_of(tag);
  made.block(value_field::image, image.bytes());
  return made.take();
}

// ---- Texts and tensors ------------------------------------------------------------------------------------

Bytes text_summary(std::string_view tag, std::string_view text) {
  Writer tensor;
  tensor.integer(tensor_field::dtype, type_string);
  tensor.block(tensor_field::shape, shape_bytes(Shape{1}));
  tensor.text(tensor_field::text, text);
  Writer made = value_of(tag);
  made.block(value_field::tensor, tensor.bytes());
  put_plugin(made, "text");
  return made.take();
}

Bytes tensor_summary(std::string_view tag, DType dtype, const Shape& shape,
                     std::span<const std::byte> elements) {
  Writer tensor;
  tensor.integer(tensor_field::dtype, type_of(dtype));
  tensor.block(tensor_field::shape, shape_bytes(shape));
  tensor.block(tensor_field::elements, elements);
  Writer made = value_of(tag);
  made.block(value_field::tensor, tensor.bytes());
  put_plugin(made, "tensor");
  return made.take();
}

// ---- Settings ---------------------------------------------------------------------------------------------

namespace {

enum class SettingType : std::int64_t { text = 1, flag = 2, number = 3 };

SettingType type_of(const Setting& setting) {
  if (std::holds_alternative<bool>(setting)) return SettingType::flag;
  return std::holds_alternative<double>(setting) ? SettingType::number : SettingType::text;
}

// google.protobuf.Value: number_value 2, string_value 3, bool_value 4.
Bytes setting_bytes(const Setting& setting) {
  Writer made;
  if (const auto* number = std::get_if<double>(&setting)) made.real64(2, *number);
  if (const auto* text = std::get_if<std::string>(&setting)) made.text(3, *text);
  if (const auto* flag = std::get_if<bool>(&setting)) made.integer(4, *flag ? 1 : 0);
  return made.take();
}

// HParamsPluginData: experiment 2, session_start_info 3, session_end_info 4.
Bytes settings_summary(std::string_view tag, std::uint64_t field, std::span<const std::byte> content) {
  Writer data;
  data.block(field, content);
  Writer made = value_of(tag);
  put_plugin(made, "hparams", data.bytes());
  return made.take();
}

// Experiment: hparam_infos 4 { name 1, type 4 }, metric_infos 5 { name 1 { tag 2 } }.
Bytes experiment_bytes(const Settings& settings, std::span<const std::string> metrics) {
  Writer experiment;
  for (const auto& [name, setting] : settings) {
    Writer info;
    info.text(1, name);
    info.integer(4, static_cast<std::int64_t>(type_of(setting)));
    experiment.block(4, info.bytes());
  }
  for (const std::string& metric : metrics) {
    Writer name;
    name.text(2, metric);
    Writer info;
    info.block(1, name.bytes());
    experiment.block(5, info.bytes());
  }
  return experiment.take();
}

// SessionStartInfo: hparams 1 (a map: key 1, value 2), start_time_secs 5.
Bytes session_start_bytes(const Settings& settings, double seconds) {
  Writer start;
  for (const auto& [name, setting] : settings) {
    Writer entry;
    entry.text(1, name);
    entry.block(2, setting_bytes(setting));
    start.block(1, entry.bytes());
  }
  start.real64(5, seconds);
  return start.take();
}

}  // namespace

std::vector<Bytes> settings_summaries(const Settings& settings, std::span<const std::string> metrics,
                                      double seconds) {
  Writer end;  // SessionEndInfo: status 1 (1: success), end_time_secs 2
  end.integer(1, 1);
  end.real64(2, seconds);
  return {settings_summary("_hparams_/experiment", 2, experiment_bytes(settings, metrics)),
          settings_summary("_hparams_/session_start_info", 3, session_start_bytes(settings, seconds)),
          settings_summary("_hparams_/session_end_info", 4, end.bytes())};
}

// ---- Graph ------------------------------------------------------------------------------------------------

namespace {

// NodeDef: name 1, op 2, input 3, attr 5 (a map: key 1, value 2 { list 1 { shape 7 } }).
Bytes node_bytes(const GraphNode& node) {
  Writer made;
  made.text(1, node.name);
  made.text(2, node.type);
  for (const std::string& input : node.inputs) made.text(3, input);
  Writer list;
  for (const Shape& shape : node.outputs) list.block(7, shape_bytes(shape));
  Writer value;
  value.block(1, list.bytes());
  Writer attribute;
  attribute.text(1, "_output_shapes");
  attribute.block(2, value.bytes());
  made.block(5, attribute.bytes());
  return made.take();
}

}  // namespace

Bytes graph_bytes(std::span<const GraphNode> nodes) {
  Writer made;  // GraphDef: node 1, versions 4 { producer 1 }
  for (const GraphNode& node : nodes) made.block(1, node_bytes(node));
  Writer versions;
  versions.integer(1, 22);
  made.block(4, versions.bytes());
  return made.take();
}

}  // namespace muster::telemetry

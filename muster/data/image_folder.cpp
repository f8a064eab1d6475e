#include "muster/data/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "muster/data/decode.h"
#include "muster/data/source.h"
#include "muster/data/transform.h"

namespace muster::data {
namespace {

constexpr int depth_max = 8;  // folders below a class

struct Picture {
  std::string path;
  std::int32_t label;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return text;
}

class PictureFinder {
 public:
  PictureFinder(const ImageFolderOptions& options, const Files& files) : options_(options), files_(files) {}

  Result<std::vector<Picture>> find() {
    MUSTER_TRY(const auto classes, find_classes());
    for (const auto& [name, label] : classes) {
      const std::size_t before = pictures_.size();
      const std::string folder = options_.folder + '/' + name;
      MUSTER_TRY_VOID(find_in(folder, label, 0));
      if (pictures_.size() == before)
        return fail(Code::not_found, fmt::format("folder '{}' holds no pictures: files that end in {} were "
                                                 "expected",
                                                 folder, fmt::join(options_.extensions, ", ")));
    }
    return std::move(pictures_);
  }

 private:
  Result<std::vector<std::pair<std::string, std::int32_t>>> find_classes() const {
    std::vector<std::pair<std::string, std::int32_t>> classes;
    MUSTER_TRY(const auto names, files_.list(options_.folder));
    for (const auto& [name, label] : options_.class_indexing) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        return fail(Code::not_found, fmt::format("folder '{}' has no class '{}', which class_indexing names",
                                                 options_.folder, name));
      classes.emplace_back(name, label);
    }
    if (!classes.empty()) return classes;
    for (const std::string& name : names)
      if (files_.list(options_.folder + '/' + name))
        classes.emplace_back(name, static_cast<std::int32_t>(classes.size()));
    if (classes.empty())
      return fail(
          Code::not_found,
          fmt::format("folder '{}' holds no folders: one for each class was expected", options_.folder));
    return classes;
  }

  bool is_picture(const std::string& name) const {
    const auto ends = [&](const std::string& extension) { return lower(name).ends_with(lower(extension)); };
    return std::any_of(options_.extensions.begin(), options_.extensions.end(), ends);
  }

  Result<> find_in(const std::string& folder, std::int32_t label, int depth) {
    MUSTER_TRY(const auto names, files_.list(folder));
    for (const std::string& name : names) {
      const std::string path = folder + '/' + name;
      if (is_picture(name))
        pictures_.push_back({path, label});
      else if (depth < depth_max && files_.list(path))
        MUSTER_TRY_VOID(find_in(path, label, depth + 1));
    }
    return {};
  }

  const ImageFolderOptions& options_;
  const Files& files_;
  std::vector<Picture> pictures_;
};

using Pictures = std::shared_ptr<const std::vector<Picture>>;

// Column "image" holds the number of the picture: the workers read the files.
class PictureSource final : public TableSource {
 public:
  explicit PictureSource(Pictures pictures)
      : TableSource({{"image", DType::int64, Shape{}}, {"label", DType::int32, Shape{}}}),
        pictures_(std::move(pictures)) {
    for (const Picture& picture : *pictures_) labels_.push_back(static_cast<std::uint32_t>(picture.label));
  }
  std::uint32_t rows() const override { return static_cast<std::uint32_t>(pictures_->size()); }
  std::span<const std::uint32_t> labels() const override { return labels_; }

 protected:
  void copy(std::size_t column, std::uint32_t row, std::byte* out) const override {
    const std::int64_t number = row;
    if (column == 0)
      std::memcpy(out, &number, sizeof number);
    else
      std::memcpy(out, &(*pictures_)[row].label, sizeof(std::int32_t));
  }

 private:
  const Pictures pictures_;
  std::vector<std::uint32_t> labels_;
};

// The number of a picture to its bytes, or to its pixels.
class ReadPicture final : public Transform {
 public:
  ReadPicture(Pictures pictures, bool decode, const Files& files)
      : pictures_(std::move(pictures)), decode_(decode), files_(files) {}
  std::string name() const override { return "ReadPicture"; }
  Result<ValueType> infer(const ValueType&) const override {
    return ValueType{DType::uint8, decode_ ? Shape{-1, -1, 3} : Shape{-1}};
  }
  bool by_value() const override { return true; }
  void run(const ValueType&, const Rows&, const std::byte*, std::byte*) const override {}
  bool follow(Channels&) const override { return false; }
  Result<Tensor> apply_value(const Tensor& value) const override {
    const Picture& picture = (*pictures_)[static_cast<std::size_t>(*value.data<std::int64_t>())];
    MUSTER_TRY(const auto bytes, files_.read(picture.path));
    if (bytes.empty())
      return fail(Code::corrupt, fmt::format("'{}' is empty: it ends at byte 0", picture.path));
    const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (!decode_)
      return Tensor::from<std::uint8_t>({first, bytes.size()}, {static_cast<std::int64_t>(bytes.size())});
    auto image = decode_picture({first, bytes.size()});
    if (!image) return fail(image.error().code, fmt::format("'{}': {}", picture.path, image.error().message));
    return image;
  }

 private:
  const Pictures pictures_;
  const bool decode_;
  const Files& files_;
};

}  // namespace

Dataset image_folder(const ImageFolderOptions& options, const Files& files) {
  auto found = PictureFinder(options, files).find();
  if (!found) return Dataset(fail(found.error()));
  if (found->size() > source_rows_max)
    return Dataset(fail(Code::invalid_argument, fmt::format("'{}' holds {} pictures; at most {} can be used",
                                                            options.folder, found->size(), source_rows_max)));
  const auto pictures = std::make_shared<const std::vector<Picture>>(*std::move(found));
  return Dataset(make_source(std::make_shared<PictureSource>(pictures), options.rows))
      .map({std::make_shared<ReadPicture>(pictures, options.decode, files)}, {"image"});
}

}  // namespace muster::data

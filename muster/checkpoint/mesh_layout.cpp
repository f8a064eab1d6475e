#include "muster/checkpoint/mesh_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "muster/checkpoint/json_limits.h"

namespace muster::checkpoint {
namespace {

using nlohmann::json;

constexpr std::uint32_t ranks_max = 65'536;
constexpr std::size_t dimensions_max = 64;

// Whether `pattern`, in which * stands for any letters, is all of `text`.
bool fits(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

const MeshLayout::Axis* axis_named(const MeshLayout& layout, std::string_view name) {
  const auto found = std::ranges::find(layout.axes, name, &MeshLayout::Axis::name);
  return found == layout.axes.end() ? nullptr : &*found;
}

// Where `rank` is on the axis.
std::uint32_t coordinate(const MeshLayout& layout, std::uint32_t rank, const MeshLayout::Axis* axis) {
  for (const MeshLayout::Axis* at = &layout.axes.back(); at != axis; --at) rank /= at->size;
  return rank % axis->size;
}

std::string divisors_text(std::int64_t size) {
  std::vector<std::int64_t> found;
  for (std::int64_t parts = 1; parts <= std::min<std::int64_t>(size, 64); ++parts)
    if (size % parts == 0) found.push_back(parts);
  return fmt::format("{}", fmt::join(found, ", "));
}

tl::unexpected<Error> wrong(std::string_view name, std::string_view what) {
  return fail(Code::invalid_argument, fmt::format("{}: {}", name, what));
}

}  // namespace

std::optional<Box> intersection(const Box& a, const Box& b) {
  Box made = a;
  for (std::size_t dim = 0; dim < a.begin.size(); ++dim) {
    made.begin[dim] = std::max(a.begin[dim], b.begin[dim]);
    made.size[dim] = std::min(a.begin[dim] + a.size[dim], b.begin[dim] + b.size[dim]) - made.begin[dim];
    if (made.size[dim] <= 0) return std::nullopt;
  }
  return made;
}

std::uint32_t MeshLayout::world_size() const {
  std::uint32_t product = 1;
  for (const Axis& axis : axes) product *= axis.size;
  return product;
}

const MeshLayout::Rule* MeshLayout::rule_of(std::string_view name) const {
  const auto found =
      std::ranges::find_if(rules, [name](const Rule& rule) { return fits(rule.pattern, name); });
  return found == rules.end() ? nullptr : &*found;
}

std::int64_t MeshLayout::parts(const Cuts& cuts, std::size_t dim) const {
  std::int64_t product = 1;
  for (const std::string& name : cuts[dim]) product *= axis_named(*this, name)->size;
  return product;
}

Box MeshLayout::box_of(const Cuts& cuts, const Shape& whole, std::uint32_t rank) const {
  Box made = Box::whole(whole);
  for (std::size_t dim = 0; dim < cuts.size(); ++dim) {
    std::int64_t index = 0;
    for (const std::string& name : cuts[dim]) {
      const Axis* axis = axis_named(*this, name);
      index = index * axis->size + coordinate(*this, rank, axis);
    }
    made.size[dim] /= parts(cuts, dim);
    made.begin[dim] = index * made.size[dim];
  }
  return made;
}

Result<> MeshLayout::check(std::string_view name) const {
  std::set<std::string_view> names;
  std::uint64_t ranks = 1;
  for (const Axis& axis : axes) {
    if (axis.name.empty() || axis.name == "-") return wrong(name, "an axis of the mesh has no name");
    if (!names.insert(axis.name).second)
      return wrong(name, fmt::format("the mesh has two axes '{}': give each a name of its own", axis.name));
    if (axis.size < 1) return wrong(name, fmt::format("axis '{}' has no rank: 1 is the least", axis.name));
    ranks *= axis.size;
    if (ranks > ranks_max) return wrong(name, fmt::format("the mesh has more than {} ranks", ranks_max));
  }
  for (const Rule& rule : rules) {
    std::set<std::string_view> used;
    for (const auto& dim : rule.cuts)
      for (const std::string& axis : dim) {
        if (axis_named(*this, axis) == nullptr)
          return wrong(name, fmt::format("'{}' is cut by '{}', and the mesh has no such axis: it has {}",
                                         rule.pattern, axis, axes.empty() ? "none" : to_string(*this)));
        if (!used.insert(axis).second)
          return wrong(
              name, fmt::format("'{}' is cut by '{}' twice: an axis cuts one dimension", rule.pattern, axis));
      }
  }
  return {};
}

Result<> MeshLayout::check(std::string_view tensor, const Cuts& cuts, const Shape& whole) const {
  if (cuts.size() != whole.rank())
    return fail(Code::invalid_argument,
                fmt::format("'{}' is {}, and its layout {} has {} dimensions: name an axis or \"-\" for each "
                            "of its {}",
                            tensor, muster::to_string(whole), checkpoint::to_string(cuts), cuts.size(),
                            whole.rank()));
  for (std::size_t dim = 0; dim < cuts.size(); ++dim)
    if (whole[dim] % parts(cuts, dim) != 0)
      return fail(
          Code::invalid_argument,
          fmt::format("'{}' is {}: dimension {} of {} cannot be cut into {} equal parts by {} of mesh "
                      "{}; {} parts would do, or \"-\", which leaves it whole",
                      tensor, muster::to_string(whole), dim, whole[dim], parts(cuts, dim),
                      fmt::join(cuts[dim], "+"), checkpoint::to_string(*this), divisors_text(whole[dim])));
  return {};
}

std::string to_string(const MeshLayout& layout) {
  std::string text;
  for (const MeshLayout::Axis& axis : layout.axes)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", axis.name, axis.size);
  return text.empty() ? "one rank" : text;
}

std::string to_string(const MeshLayout::Cuts& cuts) {
  std::string text;
  for (const auto& dim : cuts)
    text += fmt::format("{}{}", text.empty() ? "" : ", ",
                        dim.empty() ? "-" : fmt::format("{}", fmt::join(dim, "+")));
  return fmt::format("({})", text);
}

namespace {

// A basic string of TOML has the escapes of JSON.
std::string toml_text(const std::string& name) {
  return json(name).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

std::string mesh_file_text(const MeshLayout& layout) {
  std::string text = "[mesh]\n";
  for (const MeshLayout::Axis& axis : layout.axes)
    text += fmt::format("{} = {}\n", toml_text(axis.name), axis.size);
  text += "\n[parameters]\n";
  for (const MeshLayout::Rule& rule : layout.rules) {
    std::vector<std::string> dims;
    for (const auto& axes : rule.cuts)
      dims.push_back(toml_text(axes.empty() ? "-" : fmt::format("{}", fmt::join(axes, "+"))));
    text += fmt::format("{} = [{}]\n", toml_text(rule.pattern), fmt::join(dims, ", "));
  }
  return text;
}

// ---- The manifest -----------------------------------------------------------------------------------------

Result<std::string> encode_layout(const LayoutManifest& manifest) {
  json mesh = json::array();
  for (const MeshLayout::Axis& axis : manifest.layout.axes) mesh.push_back({axis.name, axis.size});
  json tensors = json::object();
  for (const MeshLayout::Rule& rule : manifest.layout.rules) {
    json& tensor = tensors[rule.pattern];
    tensor = {{"shape", manifest.shapes.at(rule.pattern).sizes()}, {"cuts", rule.cuts}};
    if (const auto step = manifest.steps.find(rule.pattern); step != manifest.steps.end())
      tensor["step"] = step->second;
  }
  json made = {{"mesh", mesh}, {"rank", manifest.rank}, {"tensors", tensors}};
  if (!manifest.training.empty()) made["training"] = manifest.training;
  return muster::json::to_text(made, "the layout of a checkpoint");
}

std::string save_text(const LayoutManifest& manifest, const std::string& tensor) {
  std::string text;
  if (const auto step = manifest.steps.find(tensor); step != manifest.steps.end())
    text = fmt::format("step {}", step->second);
  if (!manifest.training.empty())
    text += fmt::format("{}training {}", text.empty() ? "" : " of ", manifest.training);
  return text;
}

namespace {

class ManifestReader {
 public:
  explicit ManifestReader(std::string_view name) : name_(name) {}

  Result<LayoutManifest> read(const json& value) {
    if (!value.is_object() || !value.contains("mesh") || !value.contains("rank") ||
        !value.contains("tensors") || !value["mesh"].is_array() || !value["tensors"].is_object())
      return bad("it does not say mesh, rank and tensors");
    LayoutManifest made;
    for (const json& axis : value["mesh"]) {
      MUSTER_TRY(MeshLayout::Axis read, axis_of(axis));
      made.layout.axes.push_back(std::move(read));
    }
    MUSTER_TRY(const std::int64_t rank, number(value["rank"], ranks_max));
    made.rank = static_cast<std::uint32_t>(rank);
    for (const auto& [tensor, said] : value["tensors"].items()) {
      if (!said.is_object() || !said.contains("shape") || !said.contains("cuts"))
        return bad(fmt::format("'{}' lacks shape or cuts", tensor));
      MUSTER_TRY(made.shapes[tensor], shape_of(said["shape"]));
      MUSTER_TRY(MeshLayout::Cuts cuts, cuts_of(said["cuts"]));
      made.layout.rules.push_back({tensor, std::move(cuts)});
      if (said.contains("step")) {
        MUSTER_TRY(made.steps[tensor], number(said["step"], std::numeric_limits<std::int64_t>::max()));
      }
    }
    if (value.contains("training")) {
      if (!value["training"].is_string()) return bad("its training is no text");
      made.training = value["training"].get<std::string>();
    }
    if (const auto checked = made.layout.check(name_); !checked) return bad(checked.error().message);
    if (made.rank >= made.layout.world_size()) return bad("its rank is none of its mesh");
    for (const MeshLayout::Rule& rule : made.layout.rules)
      if (const auto fit = made.layout.check(rule.pattern, rule.cuts, made.shapes[rule.pattern]); !fit)
        return bad(fit.error().message);
    return made;
  }

 private:
  tl::unexpected<Error> bad(std::string_view what) const {
    return fail(Code::corrupt, fmt::format("'{}': its layout cannot be read: {}", name_, what));
  }

  Result<std::int64_t> number(const json& value, std::int64_t most) const {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > static_cast<std::uint64_t>(most))
      return bad(fmt::format("a number from 0 to {} is missing", most));
    return value.get<std::int64_t>();
  }

  Result<MeshLayout::Axis> axis_of(const json& value) const {
    if (!value.is_array() || value.size() != 2 || !value[0].is_string())
      return bad("an axis is no name and size");
    MUSTER_TRY(const std::int64_t size, number(value[1], ranks_max));
    return MeshLayout::Axis{value[0].get<std::string>(), static_cast<std::uint32_t>(size)};
  }

  Result<Shape> shape_of(const json& value) const {
    if (!value.is_array() || value.size() > dimensions_max) return bad("a shape is no list of sizes");
    std::vector<std::int64_t> sizes;
    std::int64_t product = 8;  // bytes of the largest element
    for (const json& size : value) {
      MUSTER_TRY(const std::int64_t read, number(size, std::numeric_limits<std::int64_t>::max()));
      if (__builtin_mul_overflow(product, std::max<std::int64_t>(read, 1), &product))
        return bad("a shape has more elements than can be");
      sizes.push_back(read);
    }
    return Shape(std::move(sizes));
  }

  Result<MeshLayout::Cuts> cuts_of(const json& value) const {
    MeshLayout::Cuts made;
    if (!value.is_array() || value.size() > dimensions_max) return bad("cuts are no list");
    for (const json& dim : value) {
      if (!dim.is_array()) return bad("cuts of a dimension are no list of axes");
      std::vector<std::string>& axes = made.emplace_back();
      for (const json& axis : dim) {
        if (!axis.is_string()) return bad("an axis is no name");
        axes.push_back(axis.get<std::string>());
      }
    }
    return made;
  }

  std::string_view name_;
};

}  // namespace

Result<LayoutManifest> decode_layout(std::string_view text, std::string_view name) {
  MUSTER_TRY(const json value,
             muster::json::parse(text, fmt::format("the layout in '{}'", name), json_limits));
  return ManifestReader(name).read(value);
}

}  // namespace muster::checkpoint

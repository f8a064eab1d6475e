#include "muster/launch/settings/mesh_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "muster/launch/settings/toml.h"

namespace muster::launch {
namespace {

using checkpoint::MeshLayout;

class MeshReader {
 public:
  explicit MeshReader(std::string_view name) : name_(name) {}

  Result<MeshLayout> read(const toml::table& file) {
    for (const auto& [key, value] : file)
      if (key.str() != "mesh" && key.str() != "parameters")
        return bad(value, fmt::format("'{}' is neither [mesh] nor [parameters]", key.str()));
    const toml::table* mesh = file["mesh"].as_table();
    if (mesh == nullptr)
      return fail(
          Code::invalid_argument,
          fmt::format("{}: it lacks the table [mesh] with the size of each axis, such as data = 2", name_));
    MeshLayout made;
    for (const auto& [key, value] : in_order(*mesh)) {
      if (!value->is_integer() || *value->value<std::int64_t>() < 1 || *value->value<std::int64_t>() > 65'536)
        return bad(*value, fmt::format("axis '{}' has to be a number of ranks from 1", key));
      made.axes.push_back({key, static_cast<std::uint32_t>(*value->value<std::int64_t>())});
    }
    if (const toml::node* parameters = file.get("parameters")) MUSTER_TRY_VOID(read_rules(*parameters, made));
    MUSTER_TRY_VOID(made.check(name_));
    return made;
  }

 private:
  using Entry = std::pair<std::string, const toml::node*>;

  // As they stand in the file: the order of axes counts, and the library sorts by name.
  static std::vector<Entry> in_order(const toml::table& table) {
    std::vector<Entry> made;
    for (const auto& [key, value] : table) made.emplace_back(key.str(), &value);
    std::ranges::sort(made, [](const Entry& a, const Entry& b) {
      const auto place = [](const Entry& entry) {
        const toml::source_position& begin = entry.second->source().begin;
        return std::tuple(begin.line, begin.column);
      };
      return place(a) < place(b);
    });
    return made;
  }

  tl::unexpected<Error> bad(const toml::node& node, std::string_view what) const {
    return fail(Code::invalid_argument,
                fmt::format("{}, line {}: {}", name_, node.source().begin.line, what));
  }

  Result<> read_rules(const toml::node& node, MeshLayout& layout) const {
    const toml::table* rules = node.as_table();
    if (rules == nullptr) return bad(node, "parameters has to be a table");
    for (const auto& [pattern, value] : in_order(*rules)) {
      MUSTER_TRY(MeshLayout::Cuts cuts, cuts_of(pattern, *value));
      layout.rules.push_back({pattern, std::move(cuts)});
    }
    return {};
  }

  // ["data+model", "-"]
  Result<MeshLayout::Cuts> cuts_of(const std::string& pattern, const toml::node& node) const {
    const toml::array* dims = node.as_array();
    if (dims == nullptr)
      return bad(node, fmt::format("'{}' has to be a list with an axis, or \"-\", for each dimension: "
                                   "[\"model\", \"-\"]. Names with dots stand in quotes: \"fc1.weight\"",
                                   pattern));
    MeshLayout::Cuts made;
    for (const toml::node& dim : *dims) {
      const auto text = dim.value<std::string>();
      if (!dim.is_string() || text->empty())
        return bad(dim, fmt::format("'{}' is cut by names of axes in quotes, or \"-\": whole", pattern));
      std::vector<std::string>& axes = made.emplace_back();
      if (*text == "-") continue;
      std::size_t begin = 0;
      for (std::size_t plus = 0; plus != std::string::npos; begin = plus + 1) {
        plus = text->find('+', begin);
        axes.push_back(text->substr(begin, plus == std::string::npos ? plus : plus - begin));
      }
    }
    return made;
  }

  std::string_view name_;
};

}  // namespace

Result<MeshLayout> parse_mesh_file(std::string_view text, std::string_view name) {
  if (text.size() > mesh_file_bytes_max)
    return fail(Code::invalid_argument, fmt::format("{}: a mesh file of {} bytes: at most {}", name,
                                                    text.size(), mesh_file_bytes_max));
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return fail(Code::invalid_argument,
                fmt::format("{}, line {}: {}", name, error.source().begin.line, error.description()));
  }
  return MeshReader(name).read(parsed.table());
}

Result<MeshLayout> read_mesh_file(const std::string& path, const Files& files) {
  MUSTER_TRY(const std::vector<std::byte> bytes, files.read(path));
  return parse_mesh_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace muster::launch

#include "muster/train/row_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "muster/json/json.h"
#include "muster/net/net.h"
#include "muster/train/parameter_servers.h"

namespace muster::train {
namespace {

using checkpoint::Entry;
using nlohmann::json;
namespace safetensors = checkpoint::safetensors;

constexpr std::string_view metadata_name = "muster.rows";
constexpr std::string_view folder_suffix = ".rows";
constexpr std::array<std::string_view, 3> kinds{"constant", "normal", "uniform"};
constexpr std::array<std::string_view, 3> shardings{"ranges", "hash", "whole"};
// So much of a file is read at once.
constexpr std::uint64_t read_bytes = std::uint64_t{1} << 20;

std::string file_name(server::Share share) {
  return fmt::format("server_{}_of_{}{}", share.server, share.servers, safetensors::extension);
}

// ---- The text of a table ----------------------------------------------------------------------------------

json json_of(const SavedTable& table) {
  json states = json::array();
  for (const SavedTable::State& state : table.states)
    states.push_back({{"name", state.name}, {"begins", state.begins}});
  return {{"table", table.name},
          {"folder", table.folder},
          {"save", table.save},
          {"servers", table.servers},
          {"step", table.step},
          {"sharding", shardings[static_cast<std::size_t>(table.sharding)]},
          {"rows", table.rows},
          {"width", table.width},
          {"stream", table.stream},
          {"seed", table.seed},
          {"rounded", table.dtype == DType::bfloat16},
          {"first", kinds[static_cast<std::size_t>(table.first_value.kind)]},
          {"scale", table.first_value.scale},
          {"mean", table.first_value.mean},
          {"states", std::move(states)}};
}

template <std::size_t n>
std::size_t index_of(const std::array<std::string_view, n>& names, const json& value) {
  const auto found = std::ranges::find(names, value.get<std::string>());
  if (found == names.end()) throw json::other_error::create(500, "an unknown word", &value);
  return static_cast<std::size_t>(found - names.begin());
}

SavedTable table_from(const json& value) {
  SavedTable table{
      .name = value.at("table"),
      .folder = value.at("folder"),
      .save = value.at("save"),
      .servers = value.at("servers"),
      .step = value.at("step"),
      .sharding = static_cast<server::Sharding>(index_of(shardings, value.at("sharding"))),
      .rows = value.at("rows"),
      .width = value.at("width"),
      .stream = value.at("stream"),
      .seed = value.at("seed"),
      .dtype = value.at("rounded").get<bool>() ? DType::bfloat16 : DType::float32,
      .first_value = {.kind = static_cast<server::FirstValue::Kind>(index_of(kinds, value.at("first"))),
                      .scale = value.at("scale"),
                      .mean = value.at("mean")}};
  for (const json& state : value.at("states"))
    table.states.push_back({.name = state.at("name"), .begins = state.at("begins")});
  return table;
}

}  // namespace

Result<std::string> text_of(std::span<const SavedTable> tables) {
  json all = json::array();
  for (const SavedTable& table : tables) all.push_back(json_of(table));
  return muster::json::to_text(all, "the names of tables to save");
}

Result<std::vector<SavedTable>> tables_in(std::string_view text, std::string_view origin) {
  MUSTER_TRY(const json all, muster::json::parse(text, origin, {.depth = 8, .code = Code::corrupt}));
  try {
    std::vector<SavedTable> tables;
    for (const json& each : all) tables.push_back(table_from(each));
    return tables;
  } catch (const json::exception& wrong) {
    return fail(Code::corrupt,
                fmt::format("{}: it does not say where the rows of a table are ({})", origin, wrong.what()));
  }
}

// ---- Entries of a checkpoint ------------------------------------------------------------------------------

bool is_saved_table(const Entry& entry) {
  return checkpoint::says_where_rows_are(entry.name, entry.value.dtype(), entry.value.shape());
}

Entry entry_of_text(std::string name, std::string_view text) {
  Tensor value(DType::uint8, {static_cast<std::int64_t>(text.size())});
  std::memcpy(value.bytes(), text.data(), text.size());
  return {std::move(name), value};
}

Result<Entry> saved_table_entry(const std::string& parameter, const SavedTable& table) {
  MUSTER_TRY(const std::string text, text_of(std::span(&table, 1)));
  return entry_of_text(parameter + std::string(rows_suffix), text);
}

Result<SavedTable> saved_table_of(const Tensor& entry, std::string_view origin) {
  const std::string_view text(reinterpret_cast<const char*>(entry.bytes()), entry.size_bytes());
  MUSTER_TRY(std::vector<SavedTable> tables, tables_in(text, origin));
  if (tables.size() == 1) return std::move(tables[0]);
  return fail(Code::corrupt, fmt::format("{}: it does not say where the rows of one table are", origin));
}

Result<std::vector<Entry>> with_rows_beside(std::vector<Entry> entries, const std::string& path) {
  namespace fs = std::filesystem;
  for (Entry& entry : entries) {
    if (!is_saved_table(entry)) continue;
    MUSTER_TRY(SavedTable table, saved_table_of(entry.value, fmt::format("'{}'", path)));
    const fs::path saved(table.folder);
    const fs::path beside =
        fs::absolute(fs::path(path)).parent_path() / saved.parent_path().filename() / saved.filename();
    std::error_code ignored;
    if (!fs::is_directory(beside, ignored)) continue;
    table.folder = beside.string();
    MUSTER_TRY(entry, saved_table_entry(checkpoint::parameter_of_rows(entry.name), table));
  }
  return entries;
}

Tensor row_numbers(const Tensor& rows) {
  Tensor numbers(DType::int64, {rows.shape()[0]});
  std::iota(numbers.data<std::int64_t>(), numbers.data<std::int64_t>() + numbers.elements(), std::int64_t{0});
  return numbers;
}

std::string rows_folder_of(const std::string& ckpt) {
  return std::filesystem::absolute(ckpt).lexically_normal().string() + std::string(folder_suffix);
}

// ---- Writing ----------------------------------------------------------------------------------------------

namespace {

Result<> write_at(int file, std::uint64_t at, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail_errno(fmt::format("cannot write '{}'", path), errno);
    at += static_cast<std::uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

// One server's file: of each table its ids, its rows, and what its optimizer keeps for them, each in one
// piece.
class RowFileWriter : public server::RowsWriter {
 public:
  explicit RowFileWriter(std::string path) : path_(std::move(path)), half_(path_ + ".half") {}
  ~RowFileWriter() override {
    if (file_) ::unlink(half_.c_str());
  }

  Result<> begin(const std::vector<SavedTable>& tables, const std::vector<std::uint64_t>& rows) {
    MUSTER_TRY(const std::string text, text_of(tables));
    std::vector<safetensors::Place> places;
    const auto add = [&](const std::string& name, DType dtype, Shape shape) {
      places.push_back({.name = name, .dtype = dtype, .shape = std::move(shape)});
    };
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const SavedTable& table = tables[i];
      const auto count = static_cast<std::int64_t>(rows[i]);
      const Shape shape{count, static_cast<std::int64_t>(table.width)};
      add(table.name, DType::float32, shape);
      add(table.name + std::string(ids_suffix), DType::int64, {count});
      for (const SavedTable::State& state : table.states) add(state.name, DType::float32, shape);
    }
    MUSTER_TRY(const safetensors::Header header,
               safetensors::plan(std::move(places), {{std::string(metadata_name), text}}));
    std::map<std::string, std::uint64_t> begins;
    for (const safetensors::Place& place : header.places) begins[place.name] = place.begin;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      Section section{.rows = rows[i],
                      .width = tables[i].width,
                      .ids = begins.at(tables[i].name + std::string(ids_suffix)),
                      .parts = {begins.at(tables[i].name)}};
      for (const SavedTable::State& state : tables[i].states) section.parts.push_back(begins.at(state.name));
      sections_.push_back(std::move(section));
    }
    MUSTER_TRY_VOID(checkpoint::real_storage().make_folder(std::filesystem::path(path_).parent_path()));
    file_ = net::ProcessDescriptor(::open(half_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!file_) return fail_errno(fmt::format("cannot make '{}'", half_), errno);
    const std::uint64_t size = header.places.empty() ? header.bytes.size() : header.places.back().end;
    if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0)
      return fail_errno(fmt::format("cannot write '{}'", half_), errno);
    return write_at(file_.get(), 0, std::as_bytes(std::span(header.bytes)), half_);
  }

  Result<> write(std::size_t table, std::span<const std::uint64_t> ids,
                 std::span<const float> rows) override {
    Section& section = sections_[table];
    MUSTER_CHECK(section.done + ids.size() <= section.rows, "more rows are saved than was said");
    MUSTER_TRY_VOID(
        write_at(file_.get(), section.ids + section.done * sizeof(std::uint64_t), std::as_bytes(ids), half_));
    const std::size_t parts = section.parts.size(), width = section.width;
    std::vector<float> part(ids.size() * width);
    for (std::size_t k = 0; k < parts; ++k) {
      for (std::size_t i = 0; i < ids.size(); ++i)
        std::copy_n(rows.data() + (i * parts + k) * width, width, part.data() + i * width);
      MUSTER_TRY_VOID(write_at(file_.get(), section.parts[k] + section.done * width * sizeof(float),
                               std::as_bytes(std::span(part)), half_));
    }
    section.done += ids.size();
    return {};
  }

  Result<> finish() override {
    for (const Section& section : sections_) {
      const std::vector<std::int64_t> none(section.rows - section.done, -1);
      MUSTER_TRY_VOID(write_at(file_.get(), section.ids + section.done * sizeof(std::uint64_t),
                               std::as_bytes(std::span(none)), half_));
    }
    if (::fsync(file_.get()) != 0) return fail_errno(fmt::format("cannot write '{}'", half_), errno);
    file_ = {};
    MUSTER_TRY_VOID(checkpoint::real_storage().rename(half_, path_));
    return checkpoint::real_storage().sync_folder(std::filesystem::path(path_).parent_path());
  }

 private:
  struct Section {
    std::uint64_t rows = 0;
    std::uint32_t width = 0;
    std::uint64_t ids = 0;                  // where they begin in the file
    std::vector<std::uint64_t> parts = {};  // where values begin, and each state
    std::uint64_t done = 0;                 // rows
  };

  std::string path_;
  std::string half_;
  net::ProcessDescriptor file_;
  std::vector<Section> sections_;
};

Result<std::unique_ptr<server::RowsWriter>> create(const std::string& order, server::Share share,
                                                   const std::vector<server::RowFiles::Table>& saved) {
  MUSTER_TRY(const std::vector<SavedTable> tables, tables_in(order, "an order to save rows"));
  std::vector<std::uint64_t> rows;
  for (const auto& each : saved) rows.push_back(each.rows);
  if (tables.empty() || tables.size() != rows.size())
    return fail(Code::corrupt, "an order to save rows is of other tables than it says");
  for (std::size_t i = 0; i < tables.size(); ++i)
    if (tables[i].width * (1 + tables[i].states.size()) != server::whole_width(saved[i].spec))
      return fail(Code::corrupt, fmt::format("table '{}' is to be saved with {} states, and has others",
                                             tables[i].name, tables[i].states.size()));
  auto writer = std::make_unique<RowFileWriter>(fmt::format("{}/{}", tables[0].folder, file_name(share)));
  MUSTER_TRY_VOID(writer->begin(tables, rows));
  return writer;
}

// ---- Reading ----------------------------------------------------------------------------------------------

// What one file has of a table.
class RowFile {
 public:
  static Result<RowFile> open(const SavedTable& table, std::uint32_t server) {
    RowFile made;
    made.path_ = fmt::format("{}/{}", table.folder, file_name({.server = server, .servers = table.servers}));
    auto file = checkpoint::real_storage().open(made.path_);
    if (!file && file.error().code == Code::not_found)
      return fail(
          Code::not_found,
          fmt::format("the rows of table '{}' are in {} files, and '{}' is not there: parameter server "
                      "{} wrote it on its host; bring all of them into that folder",
                      table.name, table.servers, made.path_, server));
    if (!file) return fail(file.error());
    made.file_ = *std::move(file);
    MUSTER_TRY(const safetensors::Header header, safetensors::read_header(*made.file_, made.path_));
    const auto text = header.metadata.find(std::string(metadata_name));
    if (text == header.metadata.end())
      return fail(Code::corrupt, fmt::format("'{}' does not say what rows it has", made.path_));
    MUSTER_TRY(const auto tables, tables_in(text->second, fmt::format("'{}'", made.path_)));
    const auto found = std::ranges::find(tables, table.name, &SavedTable::name);
    if (found == tables.end() || found->save != table.save || found->width != table.width)
      return fail(
          Code::corrupt,
          fmt::format("'{}' is of another checkpoint than the one that names it (step {}, table '{}')",
                      made.path_, table.step, table.name));
    MUSTER_TRY(const safetensors::Place ids, made.place(header, table.name + std::string(ids_suffix)));
    made.ids_ = ids.begin;
    made.count_ = static_cast<std::uint64_t>(ids.shape.elements());
    std::vector<std::string> names{table.name};
    for (const SavedTable::State& state : table.states) names.push_back(state.name);
    for (const std::string& name : names) {
      MUSTER_TRY(const safetensors::Place place, made.place(header, name));
      if (place.dtype != DType::float32 ||
          place.shape != Shape{ids.shape[0], static_cast<std::int64_t>(table.width)})
        return fail(Code::corrupt,
                    fmt::format("'{}': '{}' has not the rows that its ids say", made.path_, name));
      made.parts_.push_back(place.begin);
    }
    made.width_ = table.width;
    return made;
  }

  // The first `parts` of values and states, side by side for each row.
  Result<> visit(std::size_t first, std::size_t parts, const server::RowFiles::Visit& visit) const {
    const std::uint64_t at_once =
        std::max<std::uint64_t>(read_bytes / (sizeof(float) * width_ * std::max<std::size_t>(parts, 1)), 1);
    std::vector<std::uint64_t> ids;
    std::vector<float> part, rows;
    for (std::uint64_t begin = 0; begin < count_; begin += at_once) {
      const std::uint64_t count = std::min(at_once, count_ - begin);
      ids.resize(count);
      part.resize(count * width_);
      rows.resize(count * width_ * parts);
      MUSTER_TRY_VOID(
          file_->read_at(ids_ + begin * sizeof(std::uint64_t), std::as_writable_bytes(std::span(ids))));
      for (std::size_t k = 0; k < parts; ++k) {
        MUSTER_TRY_VOID(file_->read_at(parts_[first + k] + begin * width_ * sizeof(float),
                                       std::as_writable_bytes(std::span(part))));
        for (std::uint64_t i = 0; i < count; ++i)
          std::copy_n(part.data() + i * width_, width_, rows.data() + (i * parts + k) * width_);
      }
      // Places that were kept for rows which then were none.
      std::size_t there = ids.size();
      while (there > 0 && static_cast<std::int64_t>(ids[there - 1]) < 0) --there;
      MUSTER_TRY_VOID(visit(std::span(ids).first(there), std::span(rows).first(there * width_ * parts)));
    }
    return {};
  }

 private:
  Result<safetensors::Place> place(const safetensors::Header& header, const std::string& name) const {
    const auto found = std::ranges::find(header.places, name, &safetensors::Place::name);
    if (found != header.places.end()) return *found;
    return fail(Code::corrupt, fmt::format("'{}' has no tensor '{}'", path_, name));
  }

  std::string path_;
  std::unique_ptr<checkpoint::InputFile> file_;
  std::uint64_t count_ = 0, ids_ = 0;
  std::vector<std::uint64_t> parts_;
  std::size_t width_ = 0;
};

// A server of the same number, of as many, has the same rows.
Result<> read(const server::TableSpec& spec, server::Share share, const server::RowFiles::Visit& visit) {
  MUSTER_TRY(const auto tables, tables_in(spec.saved.place, fmt::format("table '{}'", spec.name)));
  const SavedTable& table = tables.at(0);
  const bool is_divided_alike =
      table.servers == share.servers && table.sharding == spec.sharding && table.rows == spec.rows;
  const std::size_t parts = spec.saved.has_states ? 1 + table.states.size() : 1;
  for (std::uint32_t server = 0; server < table.servers; ++server) {
    if (is_divided_alike && server != share.server) continue;
    MUSTER_TRY(const RowFile file, RowFile::open(table, server));
    MUSTER_TRY_VOID(file.visit(0, parts, visit));
  }
  return {};
}

Result<std::size_t> part_of(const SavedTable& table, const std::string& parameter) {
  if (parameter == table.name) return 0;
  const auto found = std::ranges::find(table.states, parameter, &SavedTable::State::name);
  if (found != table.states.end()) return static_cast<std::size_t>(found - table.states.begin()) + 1;
  return fail(Code::corrupt,
              fmt::format("the rows of table '{}' were saved without '{}'", table.name, parameter));
}

Result<std::vector<Entry>> rows_of_any_number(const SavedTable& table, std::size_t part,
                                              const std::string& parameter) {
  std::map<std::uint64_t, std::vector<float>> rows;
  for (std::uint32_t server = 0; server < table.servers; ++server) {
    MUSTER_TRY(const RowFile file, RowFile::open(table, server));
    MUSTER_TRY_VOID(file.visit(part, 1, [&](auto ids, auto values) -> Result<> {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const auto row = values.subspan(i * table.width, table.width);
        rows[ids[i]].assign(row.begin(), row.end());
      }
      return {};
    }));
  }
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor values(DType::float32, {count, static_cast<std::int64_t>(table.width)}), ids(DType::int64, {count});
  float* to = values.data<float>();
  std::int64_t* number = ids.data<std::int64_t>();
  for (const auto& [id, row] : rows) {
    *number++ = static_cast<std::int64_t>(id);
    to = std::ranges::copy(row, to).out;
  }
  return std::vector<Entry>{{parameter, values}, {parameter + std::string(ids_suffix), ids}};
}

}  // namespace

Result<std::vector<Entry>> whole_rows_of(const SavedTable& table, const std::string& parameter) {
  MUSTER_TRY(const std::size_t part, part_of(table, parameter));
  if (table.rows == 0) return rows_of_any_number(table, part, parameter);
  Tensor values(DType::float32,
                {static_cast<std::int64_t>(table.rows), static_cast<std::int64_t>(table.width)});
  const std::span all(values.data<float>(), static_cast<std::size_t>(values.elements()));
  if (part > 0)
    std::ranges::fill(all, static_cast<float>(table.states[part - 1].begins));
  else
    server::first_values({.name = table.stream,
                          .sharding = table.sharding,
                          .rows = table.rows,
                          .width = table.width,
                          .seed = table.seed,
                          .dtype = table.dtype,
                          .first_value = table.first_value},
                         0, all);
  for (std::uint32_t server = 0; server < table.servers; ++server) {
    MUSTER_TRY(const RowFile file, RowFile::open(table, server));
    MUSTER_TRY_VOID(file.visit(part, 1, [&](auto ids, auto rows) -> Result<> {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] >= table.rows)
          return fail(Code::corrupt, fmt::format("the files of table '{}' have a row {}, and the table {}",
                                                 table.name, ids[i], table.rows));
        std::ranges::copy(rows.subspan(i * table.width, table.width), all.data() + ids[i] * table.width);
      }
      return {};
    }));
  }
  return std::vector<Entry>{{parameter, values}};
}

server::RowFiles row_files() { return {.create = create, .read = read}; }

}  // namespace muster::train

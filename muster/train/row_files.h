// Row files: the rows of tables on parameter servers as part of a checkpoint: a file from each server, beside
// the .ckpt, which says where they are (docs/formats/row-files.md). Private to train.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "muster/checkpoint/checkpoint.h"
#include "muster/server/server.h"

namespace muster::train {

using checkpoint::rows_suffix;  // an entry with it has the text of a SavedTable

// A table whose rows are in the files of a folder.
struct SavedTable {
  struct State {
    std::string name = {};  // "moment1.words.embedding_table"
    double begins = 0;      // of rows that are not there
  };
  std::string name = {};    // of the parameter
  std::string folder = {};  // absolute
  std::string save = {};    // differs between any two saves, so that files of two are not taken for one
  std::uint32_t servers = 0;
  std::uint64_t step = 0;  // of the job
  server::Sharding sharding = server::Sharding::ranges;
  std::uint64_t rows = 0;  // 0: any number
  std::uint32_t width = 0;
  std::string stream = {};  // the name by which rows begin that are not there, as what follows
  std::uint64_t seed = 0;
  DType dtype = DType::float32;  // to which they are rounded: float32 or bfloat16
  server::FirstValue first_value = {};
  std::vector<State> states = {};
};
Result<std::string> text_of(std::span<const SavedTable> tables);
// `origin` begins the errors.
Result<std::vector<SavedTable>> tables_in(std::string_view text, std::string_view origin);

bool is_saved_table(const checkpoint::Entry& entry);
checkpoint::Entry entry_of_text(std::string name, std::string_view text);
Result<checkpoint::Entry> saved_table_entry(const std::string& parameter, const SavedTable& table);
Result<SavedTable> saved_table_of(const Tensor& entry, std::string_view origin);
// A checkpoint whose files were moved together with its folder of rows: they are where they lie beside
// `path`.
Result<std::vector<checkpoint::Entry>> with_rows_beside(std::vector<checkpoint::Entry> entries,
                                                        const std::string& path);

// All rows of a table, or of what its optimizer keeps for it, by that parameter's name: as a checkpoint has
// them that is in one piece, NAME and of tables of any number NAME.ids. Errors name the files that are
// missing.
Result<std::vector<checkpoint::Entry>> whole_rows_of(const SavedTable& table, const std::string& parameter);

// 0, 1 and on: int64, as many as there are rows.
Tensor row_numbers(const Tensor& rows);

// Beside `ckpt`: the folder of the rows of all of its saves.
std::string rows_folder_of(const std::string& ckpt);

// What a parameter server needs of it.
server::RowFiles row_files();

}  // namespace muster::train

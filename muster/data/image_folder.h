// Pictures in folders, one folder a class.
#pragma once

#include <map>

#include "muster/data/dataset.h"
#include "muster/data/source_options.h"

namespace muster::data {

struct ImageFolderOptions {
  std::string folder;
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png"};  // of the files to read, in any case
  // The labels of the folders named; only they are read. Empty: all, in the order of their names, from 0.
  std::map<std::string, std::int32_t> class_indexing = {};
  bool decode = false;  // else the bytes of the files, as they are
  RowOptions rows = {};
};

// Columns "image", uint8, the bytes of a file or (H, W, 3) when decoded, and "label" () int32. Lists the
// files of `folder`/CLASS/ now, those in folders below included; a class without files is an error. The
// pictures are read when they are needed: one that is damaged is an error that names its file.
Dataset image_folder(const ImageFolderOptions& options, const Files& files = real_files());

}  // namespace muster::data

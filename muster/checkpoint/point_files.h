// The files of one recovery point: written so that the folder's name means that all of it is there.
#pragma once

#include <string>

#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/point.h"
#include "muster/checkpoint/storage.h"

namespace muster::checkpoint {

// What begins so in a worker's folder is half made, or on its way out.
inline constexpr std::string_view new_prefix = ".new-";
inline constexpr std::string_view old_prefix = ".old-";

// A point that is on the disk, whole, in a folder that does not yet have its name.
struct PreparedPoint {
  Manifest manifest = {};
  std::string folder = {};
};

// Writes the point into a folder of its own below `root`. `head` says whose it is; the manifest says all of
// it. On failure nothing is left.
Result<PreparedPoint> prepare_point(const Point& point, Manifest head, const std::string& root,
                                    Storage& storage);
// Gives it its name, durably. On failure nothing of it is left under that name, and one that was there before
// is still there.
Result<> publish_point(const PreparedPoint& prepared, const std::string& root, Storage& storage);

// The content of a folder whose manifest has been read. Every hash is checked.
Result<Point> read_point(const std::string& folder, const Manifest& manifest, const Storage& storage);

// In a way that a kill in between leaves no point that looks whole.
Result<> remove_point(const std::string& folder, const std::string& root, Storage& storage);

}  // namespace muster::checkpoint

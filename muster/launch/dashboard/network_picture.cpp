#include "muster/launch/dashboard/network_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "muster/json/json.h"
#include "muster/launch/dashboard/job_json.h"
#include "muster/launch/dashboard/regular_file.h"

namespace muster::launch {
namespace {

constexpr std::uint64_t picture_bytes_max = 8 << 20;
constexpr std::uint64_t words_bytes_max = 256 << 10;

// Line by line: whatever the file says.
std::string printable_lines(std::string_view text) {
  std::string made;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    made += printable(text.substr(0, end)) + '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return made;
}

}  // namespace

bool NetworkPicture::look() {
  const RegularFile words(folder_ + '/' + picture_text_name);
  if (!words.is_there() || words.changed_ns() == changed_ns_) return false;
  changed_ns_ = words.changed_ns();
  const std::string text = words.read(0, std::min(words.size_bytes(), words_bytes_max));
  told_ = line_of({{"version", std::to_string(changed_ns_)},
                   {"has_picture", RegularFile(folder_ + '/' + picture_name).is_there()},
                   {"text", printable_lines(text)}});
  return true;
}

Result<std::string> NetworkPicture::svg() const {
  const RegularFile file(folder_ + '/' + picture_name);
  if (!file.is_there())
    return fail(Code::not_found,
                "there is no picture of the network: only a plan that is placed (Cell.place) has one");
  if (file.size_bytes() > picture_bytes_max)
    return fail(Code::not_found,
                fmt::format("the picture of the network has {} bytes, more than the {} that are shown",
                            file.size_bytes(), picture_bytes_max));
  return file.read(0, file.size_bytes());
}

}  // namespace muster::launch

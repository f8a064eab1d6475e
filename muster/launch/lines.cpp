#include "muster/launch/lines.h"

namespace muster::launch {

void LineBuffer::feed(std::string_view bytes, const std::function<void(std::string_view)>& on_line) {
  for (const char c : bytes) {
    if (c == '\r') {
      returned_ = true;
      continue;
    }
    if (c == '\n' || text_.size() >= line_size_max) {
      on_line(text_);
      clear();
      if (c == '\n') continue;
    }
    if (returned_) clear();
    text_.push_back(c);
  }
}

void LineBuffer::clear() {
  text_.clear();
  returned_ = false;
}

}  // namespace muster::launch

#include "case_file.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

namespace muster::graph {
namespace {

using Line = std::istringstream;

Attribute to_attribute(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto dtype = dtype_from_string(text)) return *dtype;
  if (text.front() == '[') {
    std::vector<std::int64_t> list;
    Line items(text.substr(1));
    std::int64_t item = 0;
    while (items >> item) {
      list.push_back(item);
      items.ignore(1);
    }
    return list;
  }
  char* end = nullptr;
  const long long whole = std::strtoll(text.c_str(), &end, 10);
  if (*end == '\0') return static_cast<std::int64_t>(whole);
  const double real = std::strtod(text.c_str(), &end);
  if (*end == '\0') return real;
  return text;
}

std::vector<double> read_numbers(Line& line) {
  std::vector<double> values;
  std::string word;
  while (line >> word) values.push_back(std::strtod(word.c_str(), nullptr));  // "nan" and "inf" too
  return values;
}

Result<CaseTensor> read_tensor(Line& line) {
  CaseTensor made;
  line >> made.dtype;
  std::string shape;
  std::getline(line, shape, ')');
  std::vector<std::int64_t> sizes;
  Line items(shape.substr(shape.find('(') + 1));
  std::int64_t size = 0;
  while (items >> size) {
    sizes.push_back(size);
    items.ignore(1);
  }
  made.shape = Shape(std::move(sizes));
  made.values = read_numbers(line);
  if (static_cast<std::int64_t>(made.values.size()) != made.shape.elements())
    return fail(Code::corrupt,
                fmt::format("{} values for the shape {}", made.values.size(), muster::to_string(made.shape)));
  if (made.dtype != "float" && !dtype_from_string(made.dtype))
    return fail(Code::corrupt, fmt::format("no dtype '{}'", made.dtype));
  return made;
}

std::string rest(Line& line) {
  std::string text;
  std::getline(line >> std::ws, text);
  return text;
}

Result<> read_line(const std::string& word, Line& line, std::vector<Case>& cases) {
  if (word == "case") {
    cases.emplace_back().sentence = rest(line);
    return {};
  }
  if (cases.empty()) return fail(Code::corrupt, "a case must begin with 'case'");
  Case& current = cases.back();
  if (word == "set") {
    std::string name;
    line >> name;
    current.attributes.set(name, to_attribute(rest(line)));
  } else if (word == "in" || word == "out") {
    MUSTER_TRY(CaseTensor tensor, read_tensor(line));
    (word == "in" ? current.inputs : current.outputs).push_back(std::move(tensor));
  } else if (word == "after") {
    CaseAfter after;
    line >> after.input;
    after.values = read_numbers(line);
    current.after.push_back(std::move(after));
  } else if (word == "gradient") {
    for (const double input : read_numbers(line))
      current.gradients.push_back(static_cast<std::size_t>(input));
  } else if (word == "error") {
    current.error = rest(line);
  } else {
    return fail(Code::corrupt, fmt::format("no such word: '{}'", word));
  }
  return {};
}

}  // namespace

std::vector<DType> Case::floats() const {
  for (const CaseTensor& tensor : inputs)
    if (tensor.dtype == "float") return {DType::float32, DType::float64};
  return {DType::float32};
}

Result<std::vector<Case>> read_cases(const std::string& text) {
  std::vector<Case> cases;
  Line lines(text);
  std::string content;
  for (int number = 1; std::getline(lines, content); ++number) {
    Line line(content);
    std::string word;
    if (!(line >> word) || word.front() == '#') continue;
    const Result<> read = read_line(word, line, cases);
    if (!read) return fail(Code::corrupt, fmt::format("line {}: {}", number, read.error().message));
  }
  return cases;
}

Tensor to_tensor(const CaseTensor& given, DType floating) {
  const DType dtype = given.dtype == "float" ? floating : *dtype_from_string(given.dtype);
  return Tensor::from<double>(std::span<const double>(given.values), given.shape).cast(dtype);
}

}  // namespace muster::graph

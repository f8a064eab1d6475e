// Documents of Kubernetes as people read them.
//
// YAML contains JSON: whatever is not plainly a word is written as a JSON string. So little of YAML is used
// that forty lines do, and a program that links to this library needs no other one for it. The tests read it
// with a real parser.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace muster::launch::kubernetes {

using Document = nlohmann::ordered_json;

std::string yaml_text(const std::vector<Document>& documents);

}  // namespace muster::launch::kubernetes

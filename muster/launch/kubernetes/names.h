// Names, quantities and paths that Kubernetes accepts.
#pragma once

#include <string_view>

namespace muster::launch::kubernetes {

// Of a host: small letters, digits and '-', a letter first.
bool is_label(std::string_view text);
// Labels with '.' between them, which may begin with a digit: names of claims and secrets.
bool is_subdomain(std::string_view text);
// "4", "500m", "1.5Gi".
bool is_quantity(std::string_view text);
// "cpu", "nvidia.com/gpu", "topology.kubernetes.io/zone".
bool is_qualified_name(std::string_view text);
// Of a node, as a selector compares it.
bool is_label_value(std::string_view text);
// Absolute, without ':' (which divides the flag) and without "..".
bool is_mount_path(std::string_view text);
bool is_variable_name(std::string_view text);

}  // namespace muster::launch::kubernetes

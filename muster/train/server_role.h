// Private to train: a process of the role MS_PSERVER.
#pragma once

#include <optional>

#include "muster/cluster/cluster.h"

namespace muster::train {

// The whole life of a parameter server that has joined its job: until the workers have left. Its port is
// reserved. Nothing: all went well.
std::optional<cluster::Failure> serve_parameters(const cluster::Settings& settings,
                                                 const cluster::Registration& registration,
                                                 cluster::Node& node,
                                                 const cluster::Interrupted& interrupted);

// That of one whose script has no parameters on servers: it says so.
std::optional<cluster::Failure> serve_nothing(const cluster::Registration& registration, cluster::Node& node,
                                              const cluster::Interrupted& interrupted);

}  // namespace muster::train

// Batch checks: whether what a worker asks for, or pushes, can be of its table. Private to server.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "muster/server/parameter_client.h"
#include "muster/server/table_spec.h"

namespace muster::server {

// Code::invalid_argument for an id that the table does not have.
Result<> check_ids(const TableSpec& spec, std::span<const std::uint64_t> ids);
// And for numbers that are none.
Result<> check_gradient(const TableSpec& spec, const ParameterClient::Gradient& gradient, std::uint64_t step,
                        std::uint32_t worker);
// For a batch that no message can carry; `what` begins the error.
Result<> check_size(std::size_t size_bytes, std::string_view what, std::uint64_t step, std::uint32_t server);

}  // namespace muster::server

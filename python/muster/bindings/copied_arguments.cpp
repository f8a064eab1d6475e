#include "python/muster/bindings/copied_arguments.h"

#include <algorithm>
#include <utility>

#include "python/muster/bindings/value.h"

namespace muster::python {
namespace {

bool is_in_memory(nb::handle object) {  // numpy's, and what else lies in memory as one
  return PyObject_CheckBuffer(object.ptr()) && !PyBytes_Check(object.ptr()) &&
         !PyByteArray_Check(object.ptr());
}

// Where it stood before, if it still does; `expected` is looked at first.
const ContainerPart* part_at(std::span<const ContainerPart> parts, const ContainerPart& place,
                             std::size_t expected) {
  if (expected < parts.size() && parts[expected].is_at(place)) return &parts[expected];
  const auto found =
      std::ranges::find_if(parts, [&](const ContainerPart& part) { return part.is_at(place); });
  return found == parts.end() ? nullptr : &*found;
}

// The parts of `now` that are others than before, then those that are gone, the last ones first.
std::vector<ContainerPart> differences(std::span<const ContainerPart> before,
                                       std::span<const ContainerPart> now) {
  std::vector<ContainerPart> found;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const ContainerPart* const was = part_at(before, now[i], i);
    if (was == nullptr || !was->value.is(now[i].value)) found.push_back(now[i]);
  }
  for (std::size_t i = before.size(); i-- > 0;)
    if (part_at(now, before[i], i) == nullptr)
      found.push_back({before[i].place, before[i].key, nb::object()});
  return found;
}

}  // namespace

bool is_input(nb::handle object) {
  if (!is_value(object)) return is_in_memory(object);
  return !nb::cast<const graph::Value&>(object).is_parameter();
}

nb::object ArgumentCopier::copy(nb::handle argument) {
  met_.clear();
  return of(argument);
}

nb::object ArgumentCopier::of(nb::handle object) {
  if (is_input(object)) return of_input(object);
  const Container container = container_of(object);
  return container == Container::none ? nb::borrow(object) : of_container(object, container);
}

nb::object ArgumentCopier::of_input(nb::handle object) {
  nb::object made = value_object_like(object, values_[next_value_++]);
  const nb::object attributes = with_attributes_ ? attributes_on(object) : nb::object();
  if (attributes.is_valid()) put_attributes(made, attributes);
  return made;
}

nb::object ArgumentCopier::of_container(nb::handle object, Container container) {
  const auto [known, is_new] = met_.try_emplace(object.ptr(), copies_.size());
  const std::size_t index = known->second;
  if (!is_new) return copies_[index].made.is_valid() ? copies_[index].made : nb::borrow(object);
  const Holder& holder = holders_[index];
  copies_.push_back({.is_own = !holder.holds_tensors, .is_opaque = holder.is_opaque});
  if (!holder.holds_tensors) copies_[index].made = nb::borrow(object);
  if (holder.is_opaque) return copies_[index].made;
  const bool is_copied_first = holder.holds_tensors && container != Container::tuple;
  if (is_copied_first) copies_[index].made = empty_container(object.type());  // which its parts may hold
  std::vector<ContainerPart> parts = parts_of(object);
  for (ContainerPart& part : parts) {
    part.value = of(part.value);
    if (is_copied_first) put_part(copies_[index].made, part);
  }
  if (!copies_[index].made.is_valid()) copies_[index].made = container_of_parts(object.type(), parts);
  copies_[index].parts = std::move(parts);
  return copies_[index].made;
}

CopiedArguments::CopiedArguments(nb::object given, nb::object named, std::vector<ArgumentCopier::Copy> copies)
    : positional(std::move(given)), keywords(std::move(named)), copies_(std::move(copies)) {
  for (std::size_t i = 0; i < copies_.size(); ++i)
    if (!PyTuple_Check(copies_[i].made.ptr())) holders_of_.try_emplace(copies_[i].made.ptr(), i);
}

std::vector<CopiedArguments::Change> CopiedArguments::changes() const {
  std::vector<Change> found;
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].is_opaque || holder_of(copies_[i].made) != i) continue;
    for (ContainerPart& part : differences(copies_[i].parts, parts_of(copies_[i].made)))
      found.push_back({i, std::move(part)});
  }
  return found;
}

void CopiedArguments::restore() const {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const auto& [made, parts, is_own, is_opaque] = copies_[i];
    if (!is_own || is_opaque || holder_of(made) != i) continue;
    const std::vector<ContainerPart> now = parts_of(made);
    if (differences(parts, now).empty()) continue;
    for (std::size_t last = now.size(); last-- > 0;) remove_part(made, now[last]);
    for (const ContainerPart& part : parts) put_part(made, part);
  }
}

std::optional<std::size_t> CopiedArguments::holder_of(nb::handle object) const {
  const auto found = holders_of_.find(object.ptr());
  return found == holders_of_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace muster::python

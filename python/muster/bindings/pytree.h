// Pytrees, as JAX and PyTorch call them: Python objects that hold tensors. Their containers are tuples, lists
// and dicts, classes of them, dataclasses and other objects of classes that are written in Python; everything
// else is a leaf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "python/muster/bindings/bindings.h"

namespace muster::python {

// Deeper ones are refused: they would be without an end.
inline constexpr std::size_t container_depth_max = 32;

enum class Container : std::uint8_t { none, tuple, list, dict, object };

// None for a leaf. Callables, members of an Enum and what compares by value (a Path, a Fraction) are leaves.
Container container_of(nb::handle object);

// What stands at one place of a container.
struct ContainerPart {
  enum class Place : std::uint8_t { item, attribute };

  Place place = Place::item;
  nb::object key;  // the index of an item, the key of a dict, the name of an attribute
  nb::object value;

  bool is_at(const ContainerPart& other) const { return place == other.place && key.equal(other.key); }
};

// Items in their order, then attributes. No code of the class runs, here and below.
std::vector<ContainerPart> parts_of(nb::handle container);

// A container of this class: an empty list, dict or object, or one of any kind with its parts.
nb::object empty_container(nb::handle type);
nb::object container_of_parts(nb::handle type, std::span<const ContainerPart> parts);

// Sets a part, or appends the item behind the last one.
void put_part(nb::handle container, const ContainerPart& part);
// Of a list: the last item.
void remove_part(nb::handle container, const ContainerPart& part);

}  // namespace muster::python

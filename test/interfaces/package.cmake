# SPDX-License-Identifier: Apache-2.0
# What the interface packages of this folder have in common; each sets `dependencies` and includes this file.
find_package(ament_cmake REQUIRED)
find_package(rosidl_default_generators REQUIRED)
foreach(dependency IN LISTS dependencies)
  find_package(${dependency} REQUIRED)
endforeach()

file(GLOB interfaces RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS action/*.action msg/*.msg srv/*.srv)
rosidl_generate_interfaces(${PROJECT_NAME} ${interfaces} DEPENDENCIES ${dependencies})
ament_export_dependencies(rosidl_default_runtime)

# Headers of the machine that the wheels were built on: see the CMakeLists.txt of the root.
set_target_properties(${PROJECT_NAME}__rosidl_generator_py PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "")
get_property(imported_targets DIRECTORY PROPERTY IMPORTED_TARGETS)
list(FILTER imported_targets INCLUDE REGEX "__rosidl_generator_py$")
foreach(target IN LISTS imported_targets)
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  foreach(folder IN LISTS folders)
    if(NOT EXISTS "${folder}")
      set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${Python3_INCLUDE_DIRS}")
    endif()
  endforeach()
endforeach()

ament_package()

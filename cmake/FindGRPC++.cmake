# Finds gRPC for C++ with protoc's plugin: GRPC++_FOUND, GRPC++_PLUGIN,
# GRPC++::GRPC++.
#
# Not gRPC's own config: it looks for libraries that are linked already, some of
# them by names that our find modules have.

find_path(GRPC++_INCLUDE_DIR grpcpp/grpcpp.h)
find_library(GRPC++_LIBRARY grpc++)
find_library(GRPC++_CORE_LIBRARY grpc)
find_library(GRPC++_PORTABILITY_LIBRARY gpr)
# gRPC's headers call it.
find_library(GRPC++_MUTEX_LIBRARY absl_synchronization)
find_program(GRPC++_PLUGIN grpc_cpp_plugin)
mark_as_advanced(GRPC++_INCLUDE_DIR GRPC++_LIBRARY GRPC++_CORE_LIBRARY
  GRPC++_PORTABILITY_LIBRARY GRPC++_MUTEX_LIBRARY GRPC++_PLUGIN)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(GRPC++
  REQUIRED_VARS GRPC++_LIBRARY GRPC++_CORE_LIBRARY GRPC++_PORTABILITY_LIBRARY
    GRPC++_MUTEX_LIBRARY GRPC++_INCLUDE_DIR GRPC++_PLUGIN)

if(GRPC++_FOUND AND NOT TARGET GRPC++::GRPC++)
  add_library(GRPC++::GRPC++ UNKNOWN IMPORTED)
  set_target_properties(GRPC++::GRPC++ PROPERTIES
    IMPORTED_LOCATION "${GRPC++_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${GRPC++_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${GRPC++_CORE_LIBRARY};\
${GRPC++_PORTABILITY_LIBRARY};${GRPC++_MUTEX_LIBRARY}")
endif()

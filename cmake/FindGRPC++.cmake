# Finds gRPC for C++ with protoc's plugin: GRPC++_FOUND, GRPC++_PLUGIN,
# GRPC++::GRPC++.
#
# Not gRPC's own config: it looks for libraries that are linked already, some of
# them by names that our find modules have.

include("${CMAKE_CURRENT_LIST_DIR}/PlainLibrary.cmake")
find_program(GRPC++_PLUGIN grpc_cpp_plugin)
mark_as_advanced(GRPC++_PLUGIN)
# gRPC's headers call the last one.
find_plain_library(GRPC++ HEADER grpcpp/grpcpp.h
  LIBRARIES grpc++ grpc gpr absl_synchronization REQUIRES GRPC++_PLUGIN)

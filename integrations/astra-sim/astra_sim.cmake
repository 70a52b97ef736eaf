# The program AstraSim_Clearway.
if(NOT EXISTS "${ASTRA_SIM}/astra-sim/common/AstraNetworkAPI.hh")
    message(FATAL_ERROR "ASTRA_SIM=\"${ASTRA_SIM}\" is no checkout of ASTRA-sim\n  fix: pass -DASTRA_SIM=/path/to/astra-sim")
endif()
foreach(submodule extern/graph_frontend/chakra/schema/protobuf/et_def.proto extern/helper/fmt/CMakeLists.txt
        extern/helper/spdlog/CMakeLists.txt extern/remote_memory_backend/analytical/AnalyticalRemoteMemory.hh)
    if(NOT EXISTS "${ASTRA_SIM}/${submodule}")
        message(FATAL_ERROR "${ASTRA_SIM}/${submodule} is missing\n  fix: git -C ${ASTRA_SIM} submodule update --init --recursive")
    endif()
endforeach()

# ASTRA-sim expects that protoc has run in its tree.
set(SCHEMA "${ASTRA_SIM}/extern/graph_frontend/chakra/schema/protobuf")
if(NOT EXISTS "${SCHEMA}/et_def.pb.cc")
    find_program(PROTOC protoc REQUIRED)
    execute_process(COMMAND "${PROTOC}" et_def.proto "--proto_path=${SCHEMA}" "--cpp_out=${SCHEMA}"
                    WORKING_DIRECTORY "${SCHEMA}" COMMAND_ERROR_IS_FATAL ANY)
endif()

add_subdirectory("${ASTRA_SIM}" AstraSim)

add_executable(AstraSim_Clearway src/main.cc src/network.cc src/astra_network.cc)
clearway_program(AstraSim_Clearway)
target_link_libraries(AstraSim_Clearway PRIVATE AstraSim)
# ASTRA-sim's headers are not free of warnings.
target_include_directories(AstraSim_Clearway SYSTEM PRIVATE "${ASTRA_SIM}"
                           "${ASTRA_SIM}/extern" "${ASTRA_SIM}/extern/helper")

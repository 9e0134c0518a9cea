// SPDX-License-Identifier: Apache-2.0
// What the test programs have in common.
#ifndef PROGRAM_HPP_
#define PROGRAM_HPP_

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <rclcpp/rclcpp.hpp>
#include <stdexcept>
#include <string>

/// End the program with a message unless something holds.
inline void require(bool holds, const char * what)
{
  if (!holds) { throw std::runtime_error(what); }
}

/// Text of a file.
inline std::string read(const char * name)
{
  std::ifstream file(name);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Exit code of a program: 0, 1 after an error, whose message is printed, or 3 with another number of words.
template<class Run>
int run_program(int count, int expected, Run run)
{
  if (count != expected) { return 3; }
  rclcpp::init(0, nullptr);
  int code = 0;
  try {
    run();
  } catch (const std::exception & error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = 1;
  }
  rclcpp::shutdown();
  return code;
}

#endif  // PROGRAM_HPP_

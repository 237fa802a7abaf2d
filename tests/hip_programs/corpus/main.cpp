// corpus --list: names and the reports that belong to them. corpus NAME: runs one.
#include "corpus.h"

#include <string_view>

int main(int count, char **arguments) {
  const std::string_view wanted = count == 2 ? arguments[1] : "";
  for (const Case &one : Cases::all()) {
    if (wanted == "--list") std::printf("%s: %s\n", one.name, one.reports);
    if (wanted != one.name) continue;
    one.run();
    return 0;
  }
  return wanted == "--list" ? 0 : 2;
}

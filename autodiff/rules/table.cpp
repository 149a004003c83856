// Lookup tables.
#include "autodiff/rule.h"
#include "autodiff/rules/no_gradient.h"

namespace tagflow::autodiff {

void add_table_rules(RuleTable& table) {
  no_gradient(
      table,
      "AnonymousHashTable AnonymousMutableDenseHashTable "
      "AnonymousMutableHashTable AnonymousMutableHashTableOfTensors "
      "HashTable HashTableV2 InitializeTable InitializeTableFromTextFile "
      "InitializeTableFromTextFileV2 InitializeTableV2 LookupTableExport "
      "LookupTableExportV2 LookupTableFind LookupTableFindV2 "
      "LookupTableImport LookupTableImportV2 LookupTableInsert "
      "LookupTableInsertV2 LookupTableRemoveV2 LookupTableSize "
      "LookupTableSizeV2 MutableDenseHashTable MutableDenseHashTableV2 "
      "MutableHashTable MutableHashTableOfTensors "
      "MutableHashTableOfTensorsV2 MutableHashTableV2",
      "a table may have got its values in any step");
}

}  // namespace tagflow::autodiff

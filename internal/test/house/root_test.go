package house_test

import "testing"

// atRoot has a test run at the module's root, of whose files it speaks. It is for each test, since
// what is read before tests run does not count for what is cached of them.
func atRoot(t *testing.T) {
	t.Helper()
	t.Chdir("../../..")
}

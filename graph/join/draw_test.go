package join_test

import _ "github.com/gomem/gomem/internal/longtest" // properties draw the same cases every time

// Package arch holds tests alone: that the packages import each other in the
// directions that docs/explanation/design.md draws, that what belongs to one
// folder happens in no other, and that the documentation says what the code
// does.
package arch

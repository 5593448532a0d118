// Package doctest holds what the documentation says to what the tree does: links lead somewhere, commands exist, the
// README's commands end in a verified webhook, the samples for merchants judge genuine and forged notifications, and the
// guides for a new country and a new operator are followed to the letter in a copy of the tree.
//
// It has nothing that is not a test. Its invariant: a page that no longer holds fails here, by its line.
package doctest

# A vertical axis that does not begin at 0 is interrupted: near its foot, which is `foot_down` from the
# upper edge of the sheet and `foot_across` from its left one.

set object 1 rectangle from screen across(foot_across - 3), down(foot_down - 6) \
    to screen across(foot_across + 3), down(foot_down - 10) fc rgb 'white' fs solid 1 noborder front
do for [i = 0:1] {
    set arrow 10 + i from screen across(foot_across - 5), down(foot_down - 4 - 4 * i) \
        to screen across(foot_across + 5), down(foot_down - 8 - 4 * i) nohead front lc rgb text_colour lw 1
}

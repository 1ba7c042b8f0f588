# Where the time of each device went, as bars that add up to 100 %; beside them how much of the links'
# capacity was used. Of several runs the devices below each other, without links.

load programs.'/common.gp'
load programs.'/frame.gp'

set lmargin at screen across(area_left)
set rmargin at screen across(devices_right)
set tmargin at screen down(area_top)
set bmargin at screen down(area_bottom)
set xrange [0:100] noextend
set yrange [n_rows:0] noextend
set xtics 20
set xlabel x_title offset 0, 0.3 textcolor rgb text_colour
set label 2 y_title at screen across(16), 0.5 * (down(area_top) + down(area_bottom)) \
    center rotate by 90 textcolor rgb text_colour
unset ytics
plot folder.'/bars.dat' using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable, \
     folder.'/names.dat' using (0):1:2 with labels right offset -0.8, 0 textcolor rgb text_colour, \
     folder.'/values.dat' using 1:2:3 with labels left offset 0.6, 0 textcolor rgb text_colour

if (n_links > 0) {
    set lmargin at screen across(links_left)
    set tmargin at screen down(links_top)
    set bmargin at screen down(links_bottom)
    set rmargin at screen across(links_right)
    set xrange [0:highest] noextend
    set yrange [1:0] noextend
    set xtics autofreq
    set xlabel 'share of the capacity (%)' offset 0, 0.3 textcolor rgb text_colour
    unset label 2
    unset ytics
    set grid xtics lt 1 lc rgb grid_colour lw 0.5
    plot folder.'/links.dat' using 1:2:(0):1:2:3 with boxxyerror lc rgb bar_colour, \
         '' using 1:(($2 + $3) / 2):4 with labels left offset 0.6, 0 textcolor rgb text_colour, \
         '' using (0):(($2 + $3) / 2):5 with labels right offset -0.8, 0 textcolor rgb text_colour
}
unset multiplot
set output
